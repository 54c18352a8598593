import { isSecureUrl } from '../core/urls';
import type { Gate, GateStatus, Settings } from '../index';
import { discoverJwksUri } from '../token/keys/discovery';
import { failed, passed } from './findings';
import type { Finding } from './findings';
import { openGate } from './gate';
import type { CliIo } from './io';

/** How long keys and generations may take to come, and how often that is looked at. */
const PATIENCE_MS = 6_000;
const LOOK_EVERY_MS = 25;

type Issuer = GateStatus['issuers'][number];

/** Examines the authorization server as the API would use it: metadata, keys, generations. */
export async function issuerFindings(io: CliIo, settings: Settings): Promise<readonly Finding[]> {
  const metadata = await metadataFinding(io, settings);
  if (!metadata.ok) return [metadata];
  const { gate, close } = openGate(io, settings);
  try {
    const issuer = await settled(gate);
    return issuer ? [metadata, keysFinding(issuer), generationsFinding(issuer, settings)] : [metadata];
  } finally {
    await close();
  }
}

async function metadataFinding({ fetch, programName }: CliIo, settings: Settings): Promise<Finding> {
  const { issuer = '', authUrl = issuer, jwksUri, allowHttp } = settings;
  if (jwksUri !== undefined) return passed('issuer', `${issuer}, keys from ${jwksUri} without discovery`);
  try {
    const found = await discoverJwksUri({
      issuer,
      authUrl,
      fetch,
      signal: AbortSignal.timeout(5_000),
      maxBytes: 1_048_576,
      checkUrl(url) {
        if (!allowHttp && !isSecureUrl(url)) throw new TypeError('not https');
      },
    });
    return passed('issuer', `metadata at ${authUrl} names ${issuer} and the key set ${found}`);
  } catch (error) {
    const fix = `check that it runs (${programName} dev starts an embedded one), and that TILLGATE_ISSUER is its iss to the byte`;
    return failed('issuer', (error as Error).message, fix);
  }
}

function keysFinding({ keys }: Issuer): Finding {
  if (keys.state === 'fresh') return passed('keys', `${keys.keys} can verify access tokens`);
  return failed('keys', keys.lastError ?? keys.state, 'the key set needs at least one public signature key (RFC 7517)');
}

function generationsFinding({ generations }: Issuer, settings: Settings): Finding {
  if (generations === undefined) return passed('generations', 'the check is off: tokens live until they expire');
  if (generations.source === 'none') return passed('generations', 'no source: learned from tokens only');
  if (generations.source === 'fresh') return passed('generations', `${generations.floors} floors read`);
  const fix = 'check TILLGATE_GENERATIONS, and TILLGATE_ADMIN_TOKEN where the token server asks for one';
  return failed('generations', generations.lastError ?? `${shown(settings)} is ${generations.source}`, fix);
}

/** The address of the source without its credentials. */
function shown({ generationSource = '' }: Settings): string {
  return generationSource.replace(/\/\/.*@/, '//');
}

/** State of the issuer once there is something to say: ready, or a first failure. */
async function settled(gate: Gate): Promise<Issuer | undefined> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const { ready, issuers } = gate.status();
    const [issuer] = issuers;
    const broken = issuer?.keys.lastError ?? issuer?.generations?.lastError;
    if (ready || broken !== undefined || Date.now() > deadline) return issuer;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
