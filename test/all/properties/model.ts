/** Scopes that the clients of the model may have. */
export const SCOPES = ['orders:read', 'orders:write', 'items:read'] as const;
export type Scope = (typeof SCOPES)[number];

export const CLIENT_IDS = ['till', 'kiosk'] as const;
export type ClientId = (typeof CLIENT_IDS)[number];

export const LIFETIME_MS = 60_000;
export const TOLERANCE_MS = 10_000;

/** A client credential, by the specification. */
export interface ModelClient {
  description: string;
  scopes: readonly string[];
  disabled: boolean;
  generation: number;
  /** Newest first, two at most. */
  secrets: readonly string[];
}

/** A token that was issued. */
export interface ModelToken {
  readonly text: string;
  readonly clientId: ClientId;
  readonly generation: number;
  readonly scopes: readonly string[];
  readonly expiresAtMs: number;
}

/** The expected state, by the rules of the specification only. */
export interface Model {
  /** Time of the resource servers. */
  nowMs: number;
  /** How far the clock of the token server is ahead. */
  aheadMs: number;
  readonly clients: Map<ClientId, ModelClient>;
  /** The highest generation that an id ever had; no generation is reused. */
  readonly highest: Map<ClientId, number>;
  /** Every secret that was ever issued for an id. */
  readonly issuedSecrets: Map<ClientId, string[]>;
  readonly tokens: ModelToken[];
  /** What a gate without a source has learned since it started. */
  readonly learned: Map<ClientId, number>;
}

export function newModel(nowMs: number): Model {
  return {
    nowMs,
    aheadMs: 0,
    clients: new Map(),
    highest: new Map(),
    issuedSecrets: new Map(CLIENT_IDS.map((id) => [id, []])),
    tokens: [],
    learned: new Map(),
  };
}

/** The next generation of an id: `max(previous + 1, now in ms)`, also after a deletion. */
export function nextGeneration({ highest, nowMs, aheadMs }: Model, id: ClientId): number {
  return Math.max((highest.get(id) ?? 0) + 1, nowMs + aheadMs);
}

/** Every token of the client issued so far is discarded. */
export function discardTokens(model: Model, id: ClientId): void {
  const generation = nextGeneration(model, id);
  model.highest.set(id, generation);
  const client = model.clients.get(id);
  if (client) client.generation = generation;
}

/** The lowest generation that a resource server may still accept. */
export function floorOf({ highest }: Model, id: ClientId): number {
  return highest.get(id) ?? 0;
}

/** The response to a call with a token, where tokens below `floor` are discarded. */
export function expectedResponse({ nowMs }: Model, token: ModelToken, scope: string, floor: number): string {
  if (nowMs >= token.expiresAtMs + TOLERANCE_MS) return '401 expired';
  if (token.generation < floor) return '401 superseded';
  return token.scopes.includes(scope) ? '200' : '403 insufficient_scope';
}

/** What introspection says about a token. */
export function isActive({ clients, nowMs, aheadMs }: Model, token: ModelToken): boolean {
  const client = clients.get(token.clientId);
  return client !== undefined && token.generation === client.generation && nowMs + aheadMs < token.expiresAtMs;
}
