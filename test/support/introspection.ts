import { fakeTime } from './fake-time';
import type { FakeTime } from './fake-time';
import { gateApp } from './gate-app';
import type { GateApp, GateAppOptions } from './gate-app';
import { goodClaims, NOW_MS } from './issuer';
import { jwks, testKey } from './keys';

export const ENDPOINT = 'https://login.test/introspect';
export const SECRET = 'a secret: with %+& umlauts \u00f6';

/** A response of the endpoint: a document, a finished response, or an error of the connection. */
export type Answer = object | Response | Error;

/** One request to the endpoint. */
interface Sent {
  readonly url: string;
  readonly init: RequestInit;
  readonly token: string | null;
}

/** An introspection endpoint that a test fills, with a record of the requests. */
export interface FakeEndpoint {
  readonly sent: Sent[];
  /** Responses by token; any other token is inactive. */
  readonly tokens: Map<string, Answer>;
  /** Replaces all responses. */
  down: Answer | undefined;
  /** Responses wait until `release()`. */
  hold(): void;
  release(): void;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

export function fakeEndpoint(): FakeEndpoint {
  const sent: Sent[] = [];
  const tokens = new Map<string, Answer>();
  let held: (() => void)[] | undefined;

  async function fetch(url: string, init: RequestInit): Promise<Response> {
    const token = new URLSearchParams(init.body as string).get('token');
    sent.push({ url, init, token });
    if (held) await new Promise<void>((resolve) => held?.push(resolve));
    const answer = endpoint.down ?? tokens.get(token ?? '') ?? { active: false };
    if (answer instanceof Error) throw answer;
    if (!(answer instanceof Response)) return Response.json(answer);
    // Not a clone: cancelling the body of one waits for the other.
    return new Response(await answer.clone().text(), answer);
  }
  const endpoint: FakeEndpoint = {
    sent,
    tokens,
    down: undefined,
    hold: () => (held = []),
    release() {
      const waiting = held ?? [];
      held = undefined;
      for (const go of waiting) go();
    },
    fetch,
  };
  return endpoint;
}

/** What the endpoint says about a good token. */
export function active(changes: object = {}): object {
  return { active: true, token_type: 'Bearer', ...goodClaims(), ...changes };
}

/** A gate that introspects opaque tokens; `good` is one. */
export interface IntrospectingGate extends GateApp {
  readonly endpoint: FakeEndpoint;
  readonly time: FakeTime;
}

export function introspectingGate(options: GateAppOptions = {}): IntrospectingGate {
  const endpoint = fakeEndpoint();
  endpoint.tokens.set('good', active());
  const time = fakeTime(NOW_MS);
  const { clock, schedule } = time;
  const issuer = { opaque: { url: ENDPOINT, clientId: 'api:1', clientSecret: SECRET }, keys: jwks(testKey()) };
  const through = gateApp({
    ...{ clock, schedule, random: () => 0.5 },
    ...('issuers' in options ? {} : issuer),
    ...options,
    fetch: endpoint.fetch,
  });
  return Object.assign(through, { endpoint, time });
}
