import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { token } from '../../support/issuer';
import { GOOD } from '../../gate/hostile/support/forge';
import { leaks } from '../../gate/hostile/support/leaks';
import { openTarget } from '../../gate/hostile/support/target';
import { anyInput } from './campaign';
import type { FuzzTarget } from './campaign';
import { checkResponse } from './check-response';
import { rawClient } from './keep-alive';
import { mutated } from './mutations';

const OTHER = token({ claims: { jti: 'another' } });
const PIECES = [
  ...['Bearer', 'bearer', 'Basic', ' ', '\t', ',', '=', '"', '\\', '.', '-', ':', ';', '\0', '\r\n', '\n', '\xa0'],
  ...[GOOD, OTHER],
];

/** Values of an Authorization header: put together from its pieces, a good one changed a little, or any bytes. */
const VALUES: Arbitrary<string> = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 8 }).map((pieces) => pieces.join('')),
  mutated(`Bearer ${GOOD}`, PIECES),
  mutated('Bearer ', PIECES),
  fc.constantFrom(`Bearer ${GOOD}`, `bearer   ${OTHER}\t`),
  fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 100 }).map((bytes) => String.fromCharCode(...bytes)),
  fc
    .tuple(
      fc.constantFrom('Bearer', 'BEARER', 'Basic', 'DPoP'),
      fc.constantFrom(' ', '   ', '\t', ''),
      fc.base64String(),
    )
    .map((parts) => parts.join('')),
);

/** RFC 9110 sections 5.5 and 11.4, RFC 6750 section 2.1, written independently of src: whether a value is right. */
function isRight(value: string): boolean {
  const [, credentials] = /^bearer +(\S+)$/i.exec(value.replace(/^[ \t]+|[ \t]+$/g, '')) ?? [];
  return credentials === GOOD || credentials === OTHER;
}

/** Any Authorization header, at the running scaffold. */
export async function authorizationHeader(): Promise<FuzzTarget<unknown>> {
  const target = await openTarget();
  const client = rawClient(target.port);
  return anyInput<string>({
    inputs: VALUES,
    async check(value) {
      target.lines.length = 0;
      const bytes = `GET /v1/orders HTTP/1.1\r\nHost: api.test\r\nAuthorization: ${value}\r\n\r\n`;
      const response = await client.send(bytes);
      // A line break ends the header: what follows is not part of the value, and may be a second header.
      const status = checkResponse(response, isRight(value.split('\r\n', 1)[0] ?? ''));
      const leaked = leaks(bytes, target.lines.join(''));
      if (leaked.length > 0) throw new Error(`in the log: ${leaked.join(' ')}`);
      return [status];
    },
    async close() {
      client.close();
      await target.close();
    },
  });
}
