import { join } from 'node:path';
import ts from 'typescript';

const ROOT = join(__dirname, '../..');
const FILE = join(ROOT, 'test/testing/users-test.ts');
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.Preserve,
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  types: ['jest'],
};

/** What TypeScript reports about a user's test file. */
function errorsOf(source: string): readonly string[] {
  const host = ts.createCompilerHost(OPTIONS);
  const original = { ...host };
  host.fileExists = (path) => path === FILE || original.fileExists(path);
  host.getSourceFile = (path, target) =>
    path === FILE ? ts.createSourceFile(path, source, target) : original.getSourceFile(path, target);
  const program = ts.createProgram([FILE], OPTIONS, host);
  const errors = program.getSemanticDiagnostics(program.getSourceFile(FILE));
  return errors.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

describe('types of the matchers', () => {
  // A test file does not import what setupFilesAfterEnv loads: TypeScript never sees that module.
  // tillgate/testing re-exports them from the module that declares their types.
  it('come with the import of the kit', () => {
    const source = `import type {} from '../../src/testing/matchers/matchers';
      declare const response: { status: number; headers: object };
      expect(response).toHaveChallenge({ error: 'invalid_token' });
      expect(response).toBeProblem({ status: 401 });`;
    expect(errorsOf(source)).toEqual([expect.stringContaining("Property 'code' is missing")]);
  }, 30_000);
});
