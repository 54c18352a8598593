/** State of a gate, for operators and health checks. */
export interface GateStatus {
  /** Whether every issuer's keys and generations are good enough to decide about requests. */
  readonly ready: boolean;
  readonly issuers: readonly {
    readonly issuer: string;
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
      /** Age of the last complete read in ms; absent before it, negative while the clock has stepped back. */
      readonly ageMs?: number;
      /** Milliseconds since the publisher was heard from; absent where it keeps no mark. */
      readonly silentMs?: number;
      readonly floors: number;
      /** Why the last read failed; for operators only. */
      readonly lastError?: string;
      readonly reads: number;
      readonly failures: number;
    };
  }[];
}

/** State of one issuer. */
export type IssuerStatus = GateStatus['issuers'][number];

/** State of the keys of one issuer. */
export type KeyStatus = IssuerStatus['keys'];

/** State of the generations of one issuer. */
export type GenerationStatus = NonNullable<IssuerStatus['generations']>;
