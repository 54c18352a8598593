import type { Clock, Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import type { PresetName } from '../core/preset-names';
import type { GenerationSource } from '../generation/source';
import type { Algorithm } from '../token/algorithms';
import type { Fetch } from '../token/keys/fetch-json';
import type { Jwks } from '../token/keys/static-keys';
import type { DecisionObserver } from './decision';

/** Where the keys of an issuer come from: discovered, at a fixed address, or given. */
export type KeyOptions =
  | {
      /** Address of the key set. Default: discovered from the issuer's metadata. */
      readonly jwksUri?: string | undefined;
      readonly keys?: undefined;
    }
  | {
      /** The key set itself (RFC 7517); nothing is fetched. Another list put into its `keys` counts from then on. */
      readonly keys: Jwks;
      readonly jwksUri?: undefined;
    };

/** How tokens of one issuer are verified. */
export type IssuerOptions = KeyOptions & {
  /** Exactly the token's `iss`, to the byte. */
  readonly issuer: string;
  /** Accepted `aud`, one of several. `false` only under presets whose issuers can leave `aud` out. */
  readonly audience: string | readonly string[] | false;
  /** Accepted client ids; any other one is refused as `wrong_audience`. Wanted with `audience: false`. Default: any. */
  readonly clientIds?: readonly string[] | undefined;
  /** Address under which the issuer's metadata is fetched. Default: `issuer`. */
  readonly authUrl?: string | undefined;
  /** Shape of the tokens. Default `rfc9068`. */
  readonly preset?: PresetName | undefined;
  /** Accepted signature algorithms. Default: RS, PS, ES 256/384/512 and EdDSA. */
  readonly algorithms?: readonly Algorithm[] | undefined;
  /** Claim that holds the generation; `'iat'` compares the issue time, `false` switches the check off. Default: by preset. */
  readonly generationClaim?: string | false | undefined;
  /** Where floors come from: a source or its URL. Default: none, floors are learned from tokens only. */
  readonly generationSource?: GenerationSource | string | undefined;
  /** Age in ms of the last complete read past which the source counts as stale. Default 60000. */
  readonly maxStalenessMs?: number | undefined;
  /** Past that age requests are refused with 503 (`reject`, the default), or pass with a warning (`accept`). */
  readonly onStale?: 'reject' | 'accept' | undefined;
  /** Interval of the reads in ms. Default 5000. */
  readonly pollMs?: number | undefined;
  /** Age in ms at which the key set is refreshed at the latest. Default 600000. */
  readonly keysMaxAgeMs?: number | undefined;
  /** How much longer in ms the last good key set serves while the issuer is down; 0: not at all. Default 3600000. */
  readonly keysStaleMs?: number | undefined;
  /** Seconds by which clocks may differ, for exp, nbf and iat. Default 10. */
  readonly clockToleranceSeconds?: number | undefined;
  /** Longest accepted `exp - iat` in seconds. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
  /**
   * Accepts tokens with a `cnf` claim (DPoP, mutual TLS; RFC 7800) as plain bearer tokens, where something before the
   * gate has checked the proof of possession. Default `false`: they are refused as `sender_constrained`.
   */
  readonly acceptSenderConstrained?: boolean | undefined;
};

/** What one gate does around the verification. */
export interface GateOptions {
  /** Refuses (`'refuse'`: 500) or reports (`'warn'`, once per route, the default) a 2xx answer that no guard allowed; `'allow'` says nothing. */
  readonly unguarded?: 'allow' | 'warn' | 'refuse' | undefined;
  /** Lets requests without any token pass, without `req.auth`; a bad token is still refused. Default `false`. */
  readonly optional?: boolean | undefined;
  /** `realm` of the challenge. Default `api`. */
  readonly realm?: string | undefined;
  /** Public address of the API; its metadata address then stands in every challenge as `resource_metadata` (RFC 9728). */
  readonly resource?: string | undefined;
  /** Whether callers learn the exact reason of a 401. Default: `true` unless `NODE_ENV` is `production`. */
  readonly exposeReasons?: boolean | undefined;
  /** Lets issuer, key set and source be `http:` on another host than loopback. Default `false`. */
  readonly allowHttp?: boolean | undefined;
  /** Number of verified tokens to remember, each from its second time on; 0: none. Default 5000. */
  readonly verifiedTokens?: number | undefined;
  /** Told about every decision, with reason and cause, and about which request. If it throws, the error is logged. */
  readonly onDecision?: DecisionObserver | undefined;
  /** Default: warnings and errors to the console. */
  readonly logger?: Logger | undefined;
  readonly clock?: Clock | undefined;
  readonly schedule?: Schedule | undefined;
  readonly fetch?: Fetch | undefined;
  /** Number in [0, 1), for jitter. */
  readonly random?: (() => number) | undefined;
}

/** Options of `authenticate()`: one issuer, or several. */
export type AuthenticateOptions = GateOptions & (IssuerOptions | { readonly issuers: readonly IssuerOptions[] });
