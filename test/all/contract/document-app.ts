import express from 'express';
import type { Express, Request, RequestHandler, Response } from 'express';
import { auth, requiredScopes, scopeIncludesAny } from 'express-oauth2-jwt-bearer';
import { authenticate, requireAuthenticated, requireScope } from '../../../src/gate';
import { attempt } from '../../../src/gate/internal';
import type { HttpTestIssuer, TestIssuer } from '../../../src/testing';
import { sampleOf } from '../../../src/testing/contract/sampler';
import { schemaValidators } from '../../../src/testing/contract/schemas';
import { basePathOf, dereference, everyOperation, loadDocument } from '../../../src/testing/openapi/document';
import type { LocatedOperation } from '../../../src/testing/openapi/document';
import { homemadeGate } from '../../testing/homemade-gate';
import { silent } from '../../testing/sample-app';

/** How a server refuses. */
export type Vocabulary = 'Tillgate' | 'express-oauth2-jwt-bearer' | 'a body of its own';
export const VOCABULARIES: readonly Vocabulary[] = ['Tillgate', 'express-oauth2-jwt-bearer', 'a body of its own'];

/** One mistake of a server. */
export interface Fault {
  readonly kind: 'a guard removed' | 'scopes swapped' | '204' | 'a body' | '404';
  readonly operation: LocatedOperation;
  /** Of a method left open: one that the document does not have for the path of the operation. */
  readonly method?: string;
}

interface Security {
  readonly gate: RequestHandler;
  readonly guard: (operation: LocatedOperation, scopes: readonly (readonly string[])[]) => RequestHandler;
  readonly errors?: express.ErrorRequestHandler;
}

function securityOf(vocabulary: Vocabulary, issuer: TestIssuer | HttpTestIssuer): Security {
  if (vocabulary === 'Tillgate') {
    return {
      gate: authenticate({ ...issuer.options, logger: silent }) as RequestHandler,
      guard(_operation, alternatives) {
        if (alternatives.some((scopes) => scopes.length === 0)) return requireAuthenticated() as RequestHandler;
        if (alternatives.every((scopes) => scopes.length === 1)) return requireScope({ anyOf: alternatives.flat() });
        const guards = alternatives.map((scopes) => requireScope(scopes) as RequestHandler);
        return guards.length === 1 ? (guards[0] as RequestHandler) : anyOf(guards);
      },
    };
  }
  if (vocabulary === 'express-oauth2-jwt-bearer') {
    const { issuer: issuerBaseURL, audience } = issuer;
    return {
      gate: auth({ issuerBaseURL, audience, tokenSigningAlg: 'ES256', strict: false }),
      guard(_operation, alternatives) {
        if (alternatives.some((scopes) => scopes.length === 0)) return (_req, _res, next) => next();
        if (alternatives.every((scopes) => scopes.length === 1)) return scopeIncludesAny(alternatives.flat());
        return anyOf(alternatives.map((scopes) => requiredScopes([...scopes])));
      },
      errors({ status = 500, headers = {} }: { status?: number; headers?: object }, _req, res, next) {
        if (res.headersSent) return next();
        res
          .set(headers as Record<string, string>)
          .status(status)
          .json({ error: 'refused' });
      },
    };
  }
  const verify = homemadeGate(issuer, 'generation');
  const refuse = (res: Response): void => void res.status(401).json({ ok: false, reason: 'NOT_FOR_YOU' });
  return {
    gate(req, res, next) {
      try {
        void verify(req, res, next);
      } catch {
        refuse(res);
      }
    },
    guard: (_operation, alternatives) => (req, res, next) => {
      const has = (scope: string): boolean => req.auth?.scopes.includes(scope) ?? false;
      if (alternatives.some((scopes) => scopes.every(has))) next();
      else refuse(res);
    },
  };
}

/** Guards of which one is enough. */
function anyOf(guards: readonly RequestHandler[]): RequestHandler {
  return function anyOfThem(req, res, next) {
    const [last, ...others] = guards.toReversed();
    const tryNext = (index: number): void => {
      const guard = others.toReversed()[index];
      if (!guard) return void last?.(req, res, next);
      const quiet = { ...res, headersSent: false } as unknown as Response;
      void guard(req, quiet, (error?: unknown) => (error === undefined ? next() : tryNext(index + 1)));
    };
    tryNext(0);
  };
}

/** A server that does what a document says, except for one fault. */
export function documentApp(
  source: object,
  issuer: TestIssuer | HttpTestIssuer,
  vocabulary: Vocabulary,
  { fault }: { readonly fault?: Fault | undefined } = {},
): Express {
  const document = loadDocument(source);
  const operations = everyOperation(document, basePathOf(document)).filter(({ path }) => !path.includes('#'));
  const { gate, guard, errors } = securityOf(vocabulary, issuer);
  const app = express();
  app.set('case sensitive routing', true);
  // Literal paths first: `/users/me` before `/users/{id}`.
  const sorted = operations.toSorted((a, b) => a.path.split('{').length - b.path.split('{').length);
  const isFaulty = (one: LocatedOperation): boolean =>
    fault?.operation.path === one.path && fault.operation.method === one.method;
  for (const operation of sorted) {
    const { method, path, access } = operation;
    const add = app[method.toLowerCase() as 'get'] as ((path: string, ...all: RequestHandler[]) => unknown) | undefined;
    if (!add || access === 'other' || access === 'elsewhere') continue;
    const isOpen = isFaulty(operation) && fault?.kind === 'a guard removed';
    const scopes = isFaulty(operation) && fault?.kind === 'scopes swapped' ? [['swapped:scope']] : operation.security;
    const isGuarded = access === 'token';
    // Without scopes the gate is the only guard.
    const needsScopes = operation.security.every((one) => one.length > 0);
    const whenOpen = needsScopes ? [gate] : [];
    const own = isGuarded ? (isOpen ? whenOpen : [gate, guard(operation, scopes)]) : [];
    add.call(app, expressPath(path), ...own, responder(document, operation));
    if (!isFaulty(operation) || fault?.method === undefined) continue;
    const open = app[fault.method.toLowerCase() as 'delete'].bind(app) as (
      path: string,
      handler: RequestHandler,
    ) => unknown;
    open(expressPath(path), (_req, res) => {
      if (fault.kind === '204') res.sendStatus(204);
      else if (fault.kind === 'a body') res.json({ removed: true });
      else res.status(404).json({ error: 'no such object' });
    });
  }
  if (errors) app.use(errors);
  return app;
}

function expressPath(path: string): string {
  const [plain = ''] = path.split('?', 1);
  let count = 0;
  return plain
    .replace(/[()[\]?+!*:\\]/g, '\\$&')
    .split(/(\{[^}]*\})/)
    .map((part) => (part.startsWith('{') ? `:p${count++}` : part.replace(/ /g, '%20')))
    .join('');
}

function responder(document: object, { operation, method }: LocatedOperation): RequestHandler {
  const { responses = {} } = operation as unknown as { readonly responses?: Readonly<Record<string, unknown>> };
  const status = Object.keys(responses).find((one) => /^2\d\d$/.test(one)) ?? '200';
  const response = dereference(document, responses[status]) as {
    readonly content?: Record<string, { schema?: object }>;
  };
  const type = Object.keys(response?.content ?? {}).find((one) => one.includes('json'));
  const body = makeBody(document, type === undefined ? undefined : response.content?.[type]?.schema);
  return function respond(_req: Request, res: Response) {
    res.status(Number(status));
    if (body === undefined || status === '204' || method === 'HEAD') return void res.end();
    res.set('content-type', type as string).send(JSON.stringify(body));
  };
}

function makeBody(document: object, schema: object | undefined): unknown {
  if (schema === undefined) return undefined;
  // An example of a document may be wrong.
  const { isValid } = schemaValidators(document);
  for (const withExamples of [true, false]) {
    const made = attempt(() => sampleOf(document, schema, { without: 'writeOnly', withExamples, isValid }));
    if (made !== undefined && isValid(schema, made)) return made;
  }
  return {};
}
