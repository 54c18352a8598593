import { AuthError } from '../../src/gate';
import { Introspector } from '../../src/gate/token/introspection/introspector';
import { FetchError } from '../../src/gate/net/http';
import { fakeTime } from './fake-time';
import type { FakeTime } from './fake-time';
import { recordingLogger } from './log';
import type { RecordingLogger } from './log';

/** An introspector without HTTP. */
export interface IntrospectorScene extends Pick<Introspector<object>, 'get' | 'introspect' | 'close'> {
  /** Tokens of callers that the endpoint was asked about. */
  readonly asked: string[];
  /** Tokens of the introspector's own. */
  readonly probes: string[];
  readonly time: FakeTime;
  readonly log: RecordingLogger;
  /** What is said about a token: its claims, inactive, or an error. Default: inactive. */
  readonly answers: Map<string, object | Error | undefined>;
  /** Calls wait for `release()`, or for ever. */
  readonly hold: () => void;
  readonly release: () => void;
  /** The claims, or the refusal. */
  readonly result: (token: string, address?: string) => Promise<unknown>;
}

/** Makes an introspector whose responses a test fills, or a function of the test decides. */
export function introspectorScene(
  cacheMs = 30_000,
  respond?: (token: string, nowMs: number) => object | Error | undefined,
): IntrospectorScene {
  const time = fakeTime();
  const log = recordingLogger();
  const asked: string[] = [];
  const probes: string[] = [];
  const answers = new Map<string, object | Error | undefined>();
  let held: (() => void)[] | undefined;
  async function askAbout(token: string, signal: AbortSignal) {
    if (signal.aborted) throw new FetchError(`it ${String(signal.reason)}`);
    (token.startsWith('made-up-by-tillgate-') ? probes : asked).push(token);
    if (held) {
      await new Promise<void>((resolve, reject) => {
        held?.push(resolve);
        signal.addEventListener('abort', () => reject(new FetchError(`it ${String(signal.reason)}`)));
      });
    }
    const answer = respond ? respond(token, time.clock()) : (answers.get(token) ?? answers.get('*'));
    if (answer instanceof Error) throw answer;
    return answer as Readonly<Record<string, unknown>> | undefined;
  }
  const { clock, schedule } = time;
  const clientOf = ({ client_id: id }: { readonly client_id?: unknown }) => (typeof id === 'string' ? id : undefined);
  const made = new Introspector<object>({
    ...{ issuer: 'https://login.test', askAbout, clientOf, trust: (claims: object) => claims },
    ...{ cacheMs, clock, schedule, logger: log, random: () => 0 },
  });
  return {
    get: (token) => made.get(token),
    introspect: (token, caller) => made.introspect(token, caller),
    close: () => made.close(),
    ...{ asked, probes, time, log, answers },
    hold: () => (held = []),
    release() {
      const waiting = held ?? [];
      held = undefined;
      for (const go of waiting) go();
    },
    result: (token, address) => made.introspect(token, { address }).catch((error: unknown) => error),
  };
}

/** The reason of a refusal; anything else as it is. */
export const reasonOf = (result: unknown): unknown => (result instanceof AuthError ? result.reason : result);

/** Tokens of one name, with numbers. */
export const many = (count: number, name: string): string[] =>
  Array.from({ length: count }, (_, index) => `${name}${index}`);
