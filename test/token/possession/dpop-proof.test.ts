import { callerKey, proof, thumbprint } from '../../support/dpop';
import { accessTokenHash, verifyProof } from '../../../src/token/possession/dpop-proof';

/** RFC 9449 section 7.1, figure 13. */
const ACCESS_TOKEN = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU';
const THUMBPRINT = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';
const PROOF =
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA';

it('an iat beyond all numbers is none', () => {
  const infinite = proof({ payload: `{"jti":"x","htm":"GET","htu":"x","iat":1e400}` });
  expect(() => verifyProof(infinite, new Set(['ES256']), thumbprint(callerKey()))).toThrow(
    expect.objectContaining({ reason: 'invalid_dpop_proof', privateDetail: 'iat is not a number' }),
  );
});

it('the proof of RFC 9449 section 7.1 is read, for its token and the key of section 6.1', () => {
  expect(verifyProof(PROOF, new Set(['ES256']), THUMBPRINT)).toEqual({
    thumbprint: THUMBPRINT,
    id: 'e1j3V_bKic8-LAEB',
    method: 'GET',
    url: 'https://resource.example.org/protectedresource',
    issuedAtMs: 1_562_262_618_000,
    notBeforeMs: -Infinity,
    expiresAtMs: Infinity,
    tokenHash: accessTokenHash(ACCESS_TOKEN),
    nonce: undefined,
  });
});
