interface Storm {
  readonly port: number;
  readonly connections: number;
  /** Raw requests, as `rawRequest()` makes them. */
  readonly requests: readonly string[];
  readonly seed: number;
}

export declare function rawRequest(
  method: string,
  path: string,
  headers?: Readonly<Record<string, string>>,
  body?: string,
): string;
export declare const WEBSOCKET: Readonly<Record<string, string>>;
export declare function storm(options: Storm): Promise<void>;
