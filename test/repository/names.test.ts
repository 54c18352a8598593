import { readFileSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import ts from 'typescript';
import { listFiles } from './sources';

const GATE = resolve(__dirname, '../../src/gate');

/** Two things with one name are one thing with a bad name, also where neither is exported. */
it('no name is declared at the top of two files of the gate', () => {
  const owners = new Map<string, string[]>();
  for (const path of listFiles(GATE)) {
    const file = relative(GATE, path).split(sep).join('/');
    for (const name of declaredIn(path)) owners.set(name, [...(owners.get(name) ?? []), file]);
  }
  expect([...owners].filter(([, files]) => files.length > 1)).toEqual([]);
});

/** What the statements of a file declare, each name once: a type and a value may share one. */
function declaredIn(path: string): ReadonlySet<string> {
  const { statements } = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest);
  return new Set(statements.flatMap(namesIn));
}

function namesIn(statement: ts.Statement): readonly string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []));
  }
  const isNamed =
    ts.isFunctionDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement);
  return isNamed && statement.name ? [statement.name.text] : [];
}
