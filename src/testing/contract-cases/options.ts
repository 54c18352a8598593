import type { RequestListener } from 'node:http';
import { readOptions } from '../../core/options';
import type { OptionReader } from '../../core/options';
import { nameOf } from '../../openapi/document';
import type { LocatedOperation } from '../../openapi/document';
import type { TokenSource } from './attacks';
import type { SampleRequest } from './sample-request';

/** Options of `contractCases()`: an app in this process, or a server in any language. */
export type ContractCasesOptions = {
  /** The document: a YAML or JSON file, or its parsed content. */
  readonly openapi: string | object;
  /** A test issuer that the API trusts. */
  readonly issuer: TokenSource;
  /**
   * Values for requests where those of the document do not lead to a success: by operationId or `GET /orders/{id}`, or
   * a function of the operation (`method` in upper case). Default: examples of the document, else small values that its
   * schemas allow.
   */
  readonly requests?:
    | Readonly<Record<string, SampleRequest>>
    | ((operation: { operationId: string | undefined; method: string; path: string }) => SampleRequest | undefined)
    | undefined;
  /** Prefix of every path of the document. Default: the path of `url` or of the document's first server. */
  readonly basePath?: string | undefined;
  /** Paths to skip, with their base path; `/docs/*` for everything below. Default: none. */
  readonly ignore?: readonly string[] | undefined;
  /** Whether 401s name their reason, not just `invalid_token`. Default: either, but the same for all. */
  readonly exposeReasons?: boolean | undefined;
  /** Whether refusals must be problem bodies with a `code` (RFC 9457). Default: true. */
  readonly problems?: boolean | undefined;
  /** Whether superseded tokens must be refused. Default: true. */
  readonly generations?: boolean | undefined;
  /** How long the API may take to learn that a client has changed, in ms. Default: 0 for an app, 2000 over HTTP. */
  readonly propagationMs?: number | undefined;
} & (
  | {
      /** An Express 4 or 5 app. Any other `(req, res)` function works too, but its routes cannot be seen. */
      readonly app: RequestListener;
      /** Harmless functions that routes call before their guard, or their names. Default: body parsers. */
      readonly beforeGuard?: readonly (string | ((...args: never[]) => unknown))[] | undefined;
      readonly url?: undefined;
    }
  | {
      /** URL of the server: `http://127.0.0.1:3000`. */
      readonly url: string;
      readonly app?: undefined;
      readonly beforeGuard?: undefined;
    }
);

/** Middleware that may run before a guard. */
export type BeforeGuard = NonNullable<ContractCasesOptions['beforeGuard']>;

/** Checked options. */
export interface ContractSettings {
  readonly app: RequestListener | undefined;
  readonly url: URL | undefined;
  readonly openapi: string | object;
  readonly issuer: TokenSource;
  readonly basePath: string | undefined;
  readonly exposeReasons: boolean | undefined;
  readonly problems: boolean;
  readonly generations: boolean;
  readonly propagationMs: number;
  readonly beforeGuard: BeforeGuard;
  readonly ignore: readonly string[];
  readonly requestOf: (operation: LocatedOperation) => SampleRequest;
}

const KEYS = [
  'app',
  'url',
  'openapi',
  'issuer',
  'requests',
  'basePath',
  'ignore',
  'exposeReasons',
  'problems',
  'generations',
  'propagationMs',
  'beforeGuard',
] as const satisfies readonly (keyof ContractCasesOptions)[];

/**
 * Reads the options of `contractCases()`.
 *
 * @throws TypeError when one is wrong
 */
export function readContractOptions(options: ContractCasesOptions): ContractSettings {
  const read = readOptions('contractCases', options, KEYS);
  const { app, openapi, issuer, ignore = [], beforeGuard = [] } = options;
  const url = readUrl(read);
  if (read.has('app') === read.has('url')) throw new TypeError('contractCases(): give either app or url');
  if (app !== undefined) read.callable('app', app);
  const isDocument = typeof openapi === 'string' || (typeof openapi === 'object' && openapi !== null);
  if (!isDocument) read.refuse('openapi', 'a file or a parsed document');
  if (typeof (issuer as Partial<TokenSource> | undefined)?.token !== 'function') {
    read.refuse('issuer', 'a test issuer, as createTestIssuer() makes it');
  }
  if (!Array.isArray(ignore)) read.refuse('ignore', 'an array of paths');
  if (!Array.isArray(beforeGuard)) read.refuse('beforeGuard', 'an array of functions or their names');
  const ownPath = url?.pathname.replace(/\/+$/, '');
  return {
    app,
    url,
    openapi,
    issuer,
    ignore,
    beforeGuard,
    basePath: read.string('basePath')?.replace(/\/+$/, '') ?? (ownPath === '' ? undefined : ownPath),
    exposeReasons: read.has('exposeReasons') ? read.boolean('exposeReasons', true) : undefined,
    problems: read.boolean('problems', true),
    generations: read.boolean('generations', true),
    propagationMs: read.number('propagationMs', url ? 2_000 : 0, { unit: 'ms', min: 0, max: 600_000 }),
    requestOf: readRequests(read, options.requests),
  };
}

function readUrl(read: OptionReader<(typeof KEYS)[number]>): URL | undefined {
  const text = read.string('url');
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url : read.refuse('url', 'an http: or https: URL');
}

function readRequests(
  read: OptionReader<(typeof KEYS)[number]>,
  requests: ContractCasesOptions['requests'] = {},
): ContractSettings['requestOf'] {
  if (typeof requests === 'function') {
    return ({ operation: { operationId }, method, path }) => requests({ operationId, method, path }) ?? {};
  }
  if (typeof requests !== 'object' || requests === null) read.refuse('requests', 'an object or a function');
  const known = new Map(Object.entries(requests));
  return (at) => known.get(at.operation.operationId ?? '') ?? known.get(nameOf(at)) ?? {};
}
