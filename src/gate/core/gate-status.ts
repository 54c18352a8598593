/** State of a gate, for operators and health checks. */
export interface GateStatus {
  /** Whether every issuer's keys and generations are good enough to decide about requests. */
  readonly ready: boolean;
  readonly issuers: readonly {
    readonly issuer: string;
    /** Shape of its tokens, and what has chosen it: the option, the URL of the issuer, or nothing (`rfc9068`). */
    readonly preset: { readonly name: string; readonly chosenBy: 'option' | 'issuer' | 'default' };
    readonly keys: {
      /** `starting`: none yet; `fresh`; `stale`: last-known-good keys serve while the issuer is down; `unavailable`: too old to serve. */
      readonly state: 'starting' | 'fresh' | 'stale' | 'unavailable';
      /** Number of usable keys. */
      readonly keys: number;
      /** Milliseconds since the key set was fetched; absent for static keys. */
      readonly ageMs?: number;
      /** Key set fetches so far. */
      readonly fetches?: number;
      readonly lastError?: string;
    };
    /** Absent where the generation check is switched off. */
    readonly generations?: {
      /**
       * `none`: floors are learned from tokens only; `starting`: the log was not read to its end yet; `stale`: it could not be
       * read for longer than `maxStalenessMs`; `silent`: its publisher was not heard from for longer than `maxSilenceMs`.
       */
      readonly source: 'none' | 'starting' | 'fresh' | 'stale' | 'silent';
      /**
       * How changes of credentials become known: by the source; without one by tokens with a higher stamped number; or not at
       * all, as long as every token was accepted by `iat`.
       */
      readonly changes: 'source' | 'tokens' | 'not at all';
      /** What an operator has to repair: floors that are not times in ms, where tokens are accepted by `iat`. */
      readonly problem?: string;
      /** Age of the last complete read in ms; absent before it, negative while the clock has stepped back. */
      readonly ageMs?: number;
      /** Milliseconds since the publisher was heard from; absent where it keeps no mark. */
      readonly silentMs?: number;
      readonly floors: number;
      /** Clients whose superseded tokens came within 5 minutes, 1,000 at most; absent where none came. */
      readonly supersededClients?: number;
      /** Why the last read failed; for operators only. */
      readonly lastError?: string;
      readonly reads: number;
      readonly failures: number;
    };
  }[];
  /** What `dpop()` remembers in memory; absent before the first proof, and where its replay store is another one. */
  readonly usedProofs?: {
    /** Number of proofs that are remembered. */
    readonly proofs: number;
    readonly maxProofs: number;
    /** Present from half of them on: clients that hold their share get 429. */
    readonly warning?: string;
  };
}

/** State of one issuer. */
export type IssuerStatus = GateStatus['issuers'][number];

/** State of the keys of one issuer. */
export type KeyStatus = IssuerStatus['keys'];

/** State of the generations of one issuer. */
export type GenerationStatus = NonNullable<IssuerStatus['generations']>;

/** State of the introspection of one issuer. */
export interface IntrospectionStatus {
  /** Tokens whose response is pending. */
  readonly waiting: number;
}
