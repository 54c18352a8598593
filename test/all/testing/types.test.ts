import { join } from 'node:path';
import ts from 'typescript';

const ROOT = join(__dirname, '../../..');
const FILE = join(ROOT, 'test/all/testing/users-test.ts');
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.Preserve,
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  types: ['jest'],
};

/** The library and src are the same for every test. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** What TypeScript reports about a user's test file. */
function errorsOf(source: string): readonly string[] {
  const host = ts.createCompilerHost(OPTIONS);
  const original = { ...host };
  host.fileExists = (path) => path === FILE || original.fileExists(path);
  host.getSourceFile = (path, target) => {
    if (path === FILE) return ts.createSourceFile(path, source, target);
    if (!parsed.has(path)) parsed.set(path, original.getSourceFile(path, target));
    return parsed.get(path);
  };
  const program = ts.createProgram([FILE], OPTIONS, host);
  const errors = program.getSemanticDiagnostics(program.getSourceFile(FILE));
  return errors.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

it('a user sees the types of the matchers, and which option is missing', () => {
  // A test file does not import what setupFilesAfterEnv loads: every entry of the kit exports a type of this module.
  const errors = errorsOf(`import type {} from '../../../src/testing/matchers';
    import { authenticate } from '../../../src/gate/index';
    declare const response: { status: number; headers: object };
    expect(response).toHaveChallenge({ error: 'invalid_token' });
    expect(response).toBeProblem({ status: 401 });
    authenticate({ issuer: 'https://login.example.com' });
    authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com', optinal: true });`);
  expect(errors).toEqual([
    expect.stringContaining("Property 'code' is missing"),
    expect.stringContaining("Property 'audience' is missing"),
    expect.stringContaining("Did you mean to write 'optional'?"),
  ]);
});

it('a scope that was not declared does not compile, in any form', () => {
  const errors = errorsOf(`import { defineScopes } from '../../../src/gate/index';
    const { requireScope, scopes } = defineScopes(['orders:read', 'orders:write']);
    requireScope('orders:read', 'orders:write');
    requireScope(['orders:read']);
    requireScope(...scopes);
    requireScope({ anyOf: ['orders:write'] });
    type Scope = (typeof scopes)[number];
    const map: Record<string, Scope[]> = { till: ['orders:read'] };
    requireScope('ordrs:read');
    requireScope('orders:read', 'ordrs:read');
    requireScope(['ordrs:read']);
    requireScope({ anyOf: ['ordrs:read'] });
    const wrong: Scope = 'ordrs:read';`);
  expect(errors).toHaveLength(5);
  expect(errors.filter((error) => error.includes('"ordrs:read"'))).toHaveLength(5);
});

it('requireScope() takes a list of scopes as it is and spread', () => {
  const errors = errorsOf(`import { requireScope } from '../../../src/gate/index';
    declare const some: readonly string[];
    declare const more: string[];
    requireScope(some);
    requireScope(...some);
    requireScope(more);
    requireScope(...more);
    requireScope({ anyOf: some });
    requireScope(17);`);
  expect(errors).toHaveLength(1);
});
