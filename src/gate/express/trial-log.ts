import type { Schedule, Timer } from '../core/clock';
import type { AuthError } from '../core/errors';
import type { Logger } from '../core/logger';
import { REASONS } from '../core/reasons';
import type { Auth } from '../gate/options';
import { refusalLog } from './refusal-log';

/** What would have been decided about one request. */
interface Outcome {
  /** The first refusal is the one that the caller would have got; `undefined`: the request would have been accepted. */
  readonly refusal: AuthError | undefined;
  readonly auth: Auth | undefined;
  /** Scopes that the guards on trial require. */
  readonly scopes: readonly string[];
}

/** Logs where trials decide otherwise than what responds. */
export interface TrialLog {
  /** @param route - the pattern of the route, so that there are only as many lines as routes */
  compare(outcome: Outcome, responded: number, method: string, route: string): void;
  close(): void;
}

/** Makes the log for the trials of one gate, and of guards after it. */
export function trialLog(dependencies: { readonly logger: Logger; readonly schedule: Schedule }): TrialLog {
  const log = refusalLog(dependencies, { isReport: true });
  const use = scopeUse(dependencies);

  return {
    compare({ refusal, auth, scopes }, responded, method, route) {
      if (auth && scopes.length > 0 && responded < 400) use.add(auth, scopes);
      // A 403 may be about something that no token says.
      const isDifferent = refusal ? responded !== 401 && responded !== 403 : responded === 401;
      if (!isDifferent) return;
      const { issuer, clientId } = auth ?? refusal?.client ?? {};
      log.refused({
        reason: refusal?.reason ?? 'accepted',
        status: refusal?.status ?? 200,
        responded,
        issuer,
        clientId,
        method,
        path: route,
        detail: refusal?.privateDetail,
        advice: refusal ? REASONS[refusal.reason].operator : 'The gate would accept what is refused today.',
      });
    },
    close() {
      log.close();
      use.close();
    },
  };
}

/** How often the unused scopes of clients are logged, and of how many clients. */
const UNUSED_EVERY_MS = 600_000;
const MAX_COUNTED_CLIENTS = 1_000;

/** Collects which scopes clients hold, and which of them a guard on trial has required of a request that was accepted. */
function scopeUse({ logger, schedule }: { readonly logger: Logger; readonly schedule: Schedule }) {
  const clients = new Map<string, { readonly held: Set<string>; readonly used: Set<string>; logged: string }>();
  let timer: Timer | undefined;
  let isClosed = false;

  function log(): void {
    timer = undefined;
    for (const [clientId, client] of clients) {
      const unused = [...client.held].filter((scope) => !client.used.has(scope));
      const text = unused.join(' ');
      if (text === client.logged) continue;
      client.logged = text;
      logger.info({ clientId, unused }, 'scopes that a client holds, and no request has needed so far');
    }
  }

  return {
    add({ clientId, scopes }: Auth, required: readonly string[]): void {
      if (!clients.has(clientId) && clients.size >= MAX_COUNTED_CLIENTS) return;
      const client = clients.get(clientId) ?? { held: new Set(), used: new Set(), logged: '' };
      clients.set(clientId, client);
      for (const scope of scopes) client.held.add(scope);
      for (const scope of required) client.used.add(scope);
      if (!isClosed) timer ??= schedule(log, UNUSED_EVERY_MS);
    },
    close(): void {
      isClosed = true;
      timer?.cancel();
      log();
    },
  };
}
