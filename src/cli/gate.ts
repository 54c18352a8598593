import { authenticate } from '../index';
import { authenticateOptions } from '../settings/authenticate-options';
import type { Gate } from '../index';
import { httpGenerations } from '../generation/index';
import type { GenerationSource, HttpGenerationsOptions } from '../generation/index';
import type { Settings } from '../settings/settings';
import type { CliIo } from './io';

/** A gate as the API would have it, without an API. */
export interface OpenGate {
  readonly gate: Gate;
  readonly close: () => Promise<void>;
}

/** Opens a gate that logs nothing: its state is what the caller reads. */
export function openGate(io: CliIo, settings: Settings): OpenGate {
  const dependencies = { fetch: io.fetch, logger: SILENT };
  const generationSource = authorizedGenerations(settings, dependencies);
  const gate = authenticate({
    ...authenticateOptions(settings),
    ...dependencies,
    ...(generationSource && { generationSource }),
  });
  return {
    gate,
    async close() {
      await gate.close();
      await generationSource?.close?.();
    },
  };
}

const SILENT = { info() {}, warn() {}, error() {} };

/**
 * The source of the settings, read with the admin token; the caller closes it. `undefined` where the token is not sent:
 * there is none, the URL has credentials, or the source is not at the token server, to which alone the token belongs.
 */
export function authorizedGenerations(
  { generationSource: url, authUrl, issuer, adminToken, allowHttp }: Settings,
  dependencies: Pick<HttpGenerationsOptions, 'fetch' | 'logger'>,
): GenerationSource | undefined {
  const tokenServerUrl = authUrl ?? issuer;
  if (adminToken === undefined || !url?.startsWith('http') || url.includes('@')) return undefined;
  if (tokenServerUrl === undefined || new URL(url).origin !== new URL(tokenServerUrl).origin) return undefined;
  return httpGenerations({ url, allowHttp, headers: { authorization: `Bearer ${adminToken}` }, ...dependencies });
}
