import type { RequestListener } from 'node:http';
import { attempt, isObject, option, readOptions } from 'tillgate/internal';
import type { TableOf, ValuesOf } from 'tillgate/internal';
import { nameOf } from '../openapi/document';
import type { LocatedOperation } from '../openapi/document';
import { PATHS } from '../audit/audit-routes';
import type { TokenSource } from './credentials';
import type { SampleRequest } from './samples';

/** The classes of cases: what they are about. */
export const CASE_CLASSES = [
  ...(['token', 'scope', 'document', 'spelling', 'method', 'header', 'variant', 'transport', 'form', 'state'] as const),
  ...(['effect', 'leak', 'object', 'property', 'routes'] as const),
] as const;

/** What a case is about. */
export type CaseClass = (typeof CASE_CLASSES)[number];

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
  /** Headers of every request, for example those that a proxy would add. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Prefix of every path of the document. Default: the path of `url` or of the document's first server. */
  readonly basePath?: string | undefined;
  /** Paths to skip, with their base path; `/docs/*` for everything below. Default: none. */
  readonly ignore?: readonly string[] | undefined;
  /**
   * Whether refusals must be problem bodies with a `code` (RFC 9457). Default: true with a gate of Tillgate, found in the
   * app or by the codes of the first refusal; any 400, 401 or 403 of another one is a refusal.
   */
  readonly problems?: boolean | undefined;
  /** Whether superseded tokens must be refused. Default: where the app has a gate of Tillgate with generations. */
  readonly generations?: boolean | undefined;
  /** Whether a 404 may hide a 401 or 403 (RFC 9110 section 15.5.4). Default: false. */
  readonly hides?: boolean | undefined;
  /** Whether what the report only lists fails the case of its operation. Default: false. */
  readonly strict?: boolean | undefined;
  /**
   * `full`: every attack on every operation. `quick`: tokens that any gate refuses once per gate, and the likeliest other
   * attacks. Default: `quick` for tokens, and for the others from 13 protected operations on.
   */
  readonly depth?: 'quick' | 'full' | undefined;
  /** Two client ids for `x-owner: client`: one that creates, one that must not reach it. */
  readonly owners?: readonly [owner: string, other: string] | undefined;
  /** What cases are about: `token`, `scope`, `spelling` and so on. Default: all. */
  readonly classes?: readonly CaseClass[] | undefined;
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

const CONTRACT_OPTIONS = {
  app: option.callable<RequestListener | undefined>(),
  url: option('an http: or https: URL', readUrl),
  openapi: option.required(
    option('a file or a parsed document', (given) =>
      typeof given === 'string' || (typeof given === 'object' && given !== null) ? given : undefined,
    ),
  ),
  issuer: option.required(option.withMethods<TokenSource>(['token'], 'a test issuer, as createTestIssuer() makes it')),
  requests: option('an object or a function', (given) =>
    typeof given === 'function' || (typeof given === 'object' && given !== null)
      ? (given as NonNullable<ContractCasesOptions['requests']>)
      : undefined,
  ),
  headers: option('an object of strings', (given) =>
    isObject(given) && Object.values(given).every((one) => typeof one === 'string')
      ? (given as Readonly<Record<string, string>>)
      : undefined,
  ),
  basePath: option.string(),
  ignore: PATHS,
  problems: option.boolean(),
  generations: option.boolean(),
  hides: option.boolean(false),
  strict: option.boolean(false),
  depth: option.oneOf(['quick', 'full']),
  owners: option(
    'an array of two client ids',
    (given) =>
      Array.isArray(given) && given.length === 2 && given.every((one) => typeof one === 'string')
        ? (given as unknown as readonly [string, string])
        : undefined,
    ['contract-cases-owner', 'contract-cases-other'] as const,
  ),
  classes: option(`an array of ${CASE_CLASSES.join(', ')}`, (given) =>
    Array.isArray(given) && given.every((one) => CASE_CLASSES.includes(one as CaseClass))
      ? (given as CaseClass[])
      : undefined,
  ),
  propagationMs: option.number({ unit: 'milliseconds', min: 0, max: 600_000 }),
  beforeGuard: option(
    'an array of functions or their names',
    (given) => (Array.isArray(given) ? (given as NonNullable<ContractCasesOptions['beforeGuard']>) : undefined),
    [],
  ),
} satisfies TableOf<ContractCasesOptions>;

/** Checked options. */
export interface ContractSettings extends ValuesOf<typeof CONTRACT_OPTIONS> {
  readonly propagationMs: number;
  readonly requestOf: (operation: LocatedOperation) => SampleRequest;
}

/**
 * Reads the options of `contractCases()`.
 *
 * @throws TypeError when one is wrong
 */
export function readContractOptions(options: ContractCasesOptions): ContractSettings {
  const given = readOptions('contractCases', options, CONTRACT_OPTIONS);
  const { app, url, basePath = url?.pathname, propagationMs = url ? 2_000 : 0 } = given;
  if ((app === undefined) === (url === undefined)) throw new TypeError('contractCases(): give either app or url');
  // A URL without a path says nothing about the paths of the document.
  const prefix = basePath?.replace(/\/+$/, '');
  return {
    ...given,
    basePath: prefix === '' && given.basePath === undefined ? undefined : prefix,
    propagationMs,
    requestOf: readRequests(given.requests),
  };
}

function readUrl(given: unknown): URL | undefined {
  const url = typeof given === 'string' ? attempt(() => new URL(given)) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url : undefined;
}

function readRequests(requests: ContractCasesOptions['requests'] = {}): ContractSettings['requestOf'] {
  if (typeof requests === 'function') {
    return ({ operation: { operationId }, method, path }) => requests({ operationId, method, path }) ?? {};
  }
  const known = new Map(Object.entries(requests));
  return (at) => known.get(at.operation.operationId ?? '') ?? known.get(nameOf(at)) ?? {};
}
