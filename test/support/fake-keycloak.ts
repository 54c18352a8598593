import type { KeycloakChangesOptions } from '../../src/cli/bridge/keycloak';

/** Time of the clock. */
export const NOW_MS = 1_800_000_000_000;
/** URL of the realm. */
export const REALM = 'https://login.test/realms/shop';

/** An admin event, as far as it is read. */
interface AdminEvent {
  readonly id: string;
  readonly time: number;
  readonly operationType: string;
  readonly resourcePath?: string;
  readonly resourceType?: string;
  readonly representation?: string;
}

/** A Keycloak whose admin API a test fills, with a record of the paths that were asked for. */
export function fakeKeycloak(): {
  readonly clients: Map<string, string>;
  /** Client scopes of the realm. */
  readonly scopes: Map<string, string>;
  readonly events: AdminEvent[];
  readonly asked: string[];
  status: number;
  /** Replaces the response to paths that end like this. */
  readonly replaced: Map<string, unknown>;
  readonly sent: Request[];
  readonly options: KeycloakChangesOptions;
} {
  const clients = new Map([['u-1', 'till-1']]);
  const scopes = new Map([['s-1', 'orders:read']]);
  const events: AdminEvent[] = [];
  const asked: string[] = [];
  const sent: Request[] = [];
  const replaced = new Map<string, unknown>();
  const server = { clients, scopes, events, asked, sent, replaced, status: 200 };

  function page(rows: readonly unknown[], query: URLSearchParams): Response {
    const first = Number(query.get('first'));
    return Response.json(rows.slice(first, first + Number(query.get('max'))));
  }

  function respond(request: Request): Response {
    const { url, headers } = request;
    sent.push(request.clone());
    const { pathname, searchParams } = new globalThis.URL(url);
    asked.push(`${pathname}${headers.get('authorization') ?? ''}`);
    for (const [end, body] of replaced) {
      if (pathname.endsWith(end)) return typeof body === 'string' ? new Response(body) : Response.json(body);
    }
    if (server.status !== 200) return new Response('secret details', { status: server.status });
    if (pathname.endsWith('/token')) return Response.json({ access_token: 'at-1', expires_in: 60 });
    if (pathname.endsWith('/events/config')) return Response.json({ adminEventsEnabled: true });
    const rows = [...clients].map(([id, clientId]) => ({ id, clientId }));
    if (pathname.endsWith('/clients')) return page(rows, searchParams);
    if (pathname.endsWith('/client-scopes')) return Response.json([...scopes].map(([id, name]) => ({ id, name })));
    if (pathname.endsWith('/admin-events')) {
      const since = Number(searchParams.get('dateFrom'));
      return page(events.filter(({ time }) => time >= since).reverse(), searchParams);
    }
    const found = rows.find(({ id }) => pathname.endsWith(`/clients/${id}`));
    return found ? Response.json(found) : new Response('', { status: 404 });
  }
  const fetch = (input: string | URL | Request, init?: RequestInit): Promise<Response> =>
    Promise.resolve(respond(new Request(input, init)));
  return Object.assign(server, {
    options: { url: REALM, clientId: 'bridge', clientSecret: 'a:b', fetch, clock: () => NOW_MS },
  });
}

let serial = 0;
/** An event of a path, some ms after `NOW_MS`. */
export const event = (operationType: string, resourcePath: string, at = 0, clientId?: string): AdminEvent => {
  const representation = clientId === undefined ? {} : { representation: JSON.stringify({ clientId }) };
  return { id: `e-${serial++}`, time: NOW_MS + at, operationType, resourcePath, ...representation };
};
