import { join } from 'node:path';
import { startChild } from '../child-process';

/** What a contender is to issue: tokens for `audience` with these scopes. */
export interface Issuing {
  readonly algorithm: 'RS256' | 'ES256';
  readonly audience: string;
  /** Client ids to be registered. */
  readonly clients: readonly string[];
  readonly scope: string;
}

/** A token endpoint in a process of its own, on a core of its own. */
export interface Contender {
  readonly url: string;
  /** Forms of token requests, one per client. */
  readonly forms: readonly string[];
  /** CPU time since the question before, in us. */
  cpuUs: () => Promise<number>;
  stop(): Promise<void>;
}

interface Started {
  readonly url: string;
  /** Where none came, any secret will do. */
  readonly credentials?: readonly { readonly client_id: string; readonly client_secret: string }[];
}

/** Starts one of `contenders/`. */
export async function startContender(name: string, issuing: Issuing): Promise<Contender> {
  const child = startChild(join(__dirname, 'server.mjs'));
  const { url, credentials } = (await child.ask({ contender: name, ...issuing })) as Started;
  const clients = credentials ?? issuing.clients.map((client_id) => ({ client_id, client_secret: 'any' }));
  return {
    url,
    forms: clients.map((client) => tokenForm(client, issuing.scope)),
    cpuUs: async () => ((await child.ask('usage')) as { cpuUs: number }).cpuUs,
    stop: () => child.stop(),
  };
}

function tokenForm(client: { readonly client_id: string; readonly client_secret: string }, scope: string): string {
  const { client_id, client_secret } = client;
  return new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret, scope }).toString();
}
