import type { IncomingMessage } from 'node:http';
import type { AuthError } from '../core/errors';
import type { Dependencies } from '../core/options';
import type { Reason } from '../core/reasons';
import type { PresetName } from '../token/presets';
import type { GenerationSource } from '../generation/log';
import type { OpaqueOptions } from '../token/opaque-options';
import type { KeyStore } from '../token/keys/key-store';
import type { Possession } from '../possession/possession';
import type { ScopeOptions } from '../token/scopes';

/** How tokens of one issuer are verified. */
export type IssuerOptions = {
  /** Exactly the token's `iss` (RFC 9068 section 4). */
  readonly issuer: string;
  /**
   * Accepted `aud`, one or several; `false` only under presets whose issuers can leave it out, or with `clientIds` and
   * `keys: []` for opaque tokens.
   */
  readonly audience: string | readonly string[] | false;
  /** Accepted client ids, recommended with `audience: false`. Default: any. */
  readonly clientIds?: readonly string[] | undefined;
  /** URL whose metadata (RFC 8414) is fetched. Default: `issuer`. */
  readonly authUrl?: string | undefined;
  /** Shape of the tokens. Default: that of the vendor whose issuers have such a URL, else `rfc9068`. */
  readonly preset?: PresetName | undefined;
  /** Accepted signature algorithms. Default: RS, PS, ES 256/384/512, and EdDSA (also as Ed25519). */
  readonly algorithms?: readonly (`${'RS' | 'PS' | 'ES'}${256 | 384 | 512}` | 'EdDSA' | 'Ed25519')[] | undefined;
  /** Which claims hold permissions, and which scopes their names grant. Default: the claim of the preset, each name a scope. */
  readonly scopes?: ScopeOptions | undefined;
  /**
   * Claim that every token must have as its generation, or the path to it (`'ext.generation'`, `['ext', 'a.b']`); `'iat'`
   * compares the issue time, `false` switches the check off. Default: the claim of the preset, and `iat` for a token that lacks it.
   */
  readonly generationClaim?: string | readonly string[] | false | undefined;
  /** Where floors come from: a source or its URL. Default: none, floors are learned from tokens only. */
  readonly generationSource?: GenerationSource | string | undefined;
  /** Longest time in ms since the source was read to its end. Default 60000. */
  readonly maxStalenessMs?: number | undefined;
  /** Longest time in ms since the publisher of the source was heard from. Default 900000. */
  readonly maxSilenceMs?: number | undefined;
  /** Past one of the two: 503 (`reject`, the default), or accepted with a warning (`accept`). */
  readonly onStale?: 'reject' | 'accept' | undefined;
  /**
   * Asks the issuer about opaque tokens (RFC 7662); at most one issuer of a gate has it. Default: they are refused.
   */
  readonly opaque?: OpaqueOptions | undefined;
  /** Age in ms at which the key set is refreshed at the latest. Default 600000. */
  readonly keysMaxAgeMs?: number | undefined;
  /** How much longer in ms the last good key set serves while the issuer is down; 0: not at all. Default 3600000. */
  readonly keysStaleMs?: number | undefined;
  /** Seconds by which clocks may differ, for exp, nbf and iat. Default 10. */
  readonly clockToleranceSeconds?: number | undefined;
  /** Longest accepted `exp - iat` in seconds. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
} & (
  | {
      /** URL of the key set. Default: discovered from the issuer's metadata. */
      readonly jwksUri?: string | undefined;
      readonly keys?: undefined;
    }
  | {
      /** The key set itself (RFC 7517); nothing is fetched. Replacing its `keys` array takes effect immediately. */
      readonly keys: { readonly keys: readonly object[] } | readonly object[];
      readonly jwksUri?: undefined;
    }
);

/** Options of one gate, for all its issuers. */
export interface GateOptions extends Dependencies {
  /**
   * A 2xx response that no guard allowed: `'refuse'` replaces it by a 500, or closes the connection; `'warn'` logs it once
   * per route. Default `'warn'`; with `optional` `'allow'`.
   */
  readonly unguarded?: 'allow' | 'warn' | 'refuse' | undefined;
  /** Accepts requests without a token, with `req.auth` undefined; a bad token is refused. Default `false`. */
  readonly optional?: boolean | undefined;
  /**
   * Who responds to what gate and guards refuse: they (`'respond'`, the default), or the app's error handler, which gets
   * the `AuthError` with `status` and `headers` (`'next'`).
   */
  readonly refusals?: 'respond' | 'next' | undefined;
  /** `realm` of the challenge. Default `api`. */
  readonly realm?: string | undefined;
  /** Public URL of the API: every challenge then has the URL of its metadata (RFC 9728). */
  readonly resource?: string | undefined;
  /** `scope` of the challenge of a 401. Default: what the first guards of the route require, where the gate is on the route. */
  readonly challengeScopes?: readonly string[] | undefined;
  /** Base URL of the `type` of a problem, which is `<problemTypes><code>`. Default: `about:blank`. */
  readonly problemTypes?: string | undefined;
  /** Whether callers learn the exact reason of a 401. Default: `true` unless `NODE_ENV` is `production`. */
  readonly exposeReasons?: boolean | undefined;
  /**
   * Kinds of proof with which tokens that are bound to a key are accepted: `dpop()` and `mtls()` of `tillgate/possession`.
   * Default: none.
   */
  readonly possession?: readonly Possession[] | undefined;
  /** Refuses tokens that are not bound in any of these ways (FAPI 2.0). Default `false`. */
  readonly possessionRequired?: boolean | undefined;
  /** Lets issuer, key set and source be `http:` on another host than loopback. Default `false`. */
  readonly allowHttp?: boolean | undefined;
  /** Keeps the last good key sets over restarts. Who can write to it can forge tokens. Default: none. */
  readonly keyStore?: KeyStore | undefined;
  /**
   * Called for every decision, with reason and cause. Do not log the request's headers: they contain the token. If it
   * throws or rejects, the error is logged.
   */
  readonly onDecision?: ((decision: Decision, request: IncomingMessage) => unknown) | undefined;
}

/** Options of `authenticate()`: one issuer, several, or the one that the variables name. */
export type AuthenticateOptions = GateOptions &
  (
    | IssuerOptions
    | { readonly issuers: readonly IssuerOptions[] }
    | (Partial<Omit<IssuerOptions, 'issuer'>> & { readonly issuer?: never })
  );

/** The authenticated client, from its verified access token. Frozen; shared by all requests with the same token. */
export interface Auth {
  readonly issuer: string;
  /** The client credential that the token was issued to. */
  readonly clientId: string;
  /** `sub`, if the token has one. */
  readonly subject: string | undefined;
  /** `jti`, if the token has one. */
  readonly tokenId: string | undefined;
  readonly scopes: readonly string[];
  /** Generation of the client credential; `undefined` if the check is switched off. */
  readonly generation: number | undefined;
  /** `exp` in ms since the epoch. */
  readonly expiresAtMs: number;
  /** The whole payload of the token. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * What a gate or a guard decided about one request, for operators: `onDecision` and the channel `tillgate:decision` of
 * `node:diagnostics_channel` get the same object. Contains no token.
 */
export interface Decision {
  readonly outcome: 'authenticated' | 'anonymous' | 'refused';
  /** Present when refused. */
  readonly reason?: Reason;
  /** HTTP status, present when refused. */
  readonly status?: number;
  /** The refusal with `cause` and `privateDetail`. */
  readonly error?: AuthError;
  /** Present when the token was good, also when a guard then refused. */
  readonly auth?: Auth;
  readonly method: string;
  /** Path without its query, and without anything that can be a token. */
  readonly path: string;
  /** The route as it was declared, once Express knows it: `/v1/orders/:id`. */
  readonly route?: string;
  readonly requestId?: string;
  /** Issuer and client of the token; absent where no signature and no issuer vouches for them. */
  readonly issuer?: string;
  readonly clientId?: string;
  /** Time from the Authorization header to the decision of the gate, in ms. */
  readonly durationMs?: number;
  /** Whether the token was verified before; `none`: the request has no token to verify. */
  readonly cache?: 'hit' | 'miss' | 'none';
  /** The request itself. Not enumerable: its headers contain the token. */
  readonly request: IncomingMessage;
}
