import { readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import ts from 'typescript';
import rooms from '../../src/rooms.json';
import { listFiles } from './sources';

const SRC = resolve(__dirname, '../../src');

/** Two things of one room with one name are one thing with a bad name. What a file keeps for itself is named for its readers alone. */
it.each(rooms.map(({ folder }) => folder))('no exported name is declared in two files of %s', (folder) => {
  const owners = new Map<string, string[]>();
  for (const path of listFiles(join(SRC, folder))) {
    const file = relative(SRC, path).split(sep).join('/');
    for (const name of declaredIn(path)) owners.set(name, [...(owners.get(name) ?? []), file]);
  }
  expect([...owners].filter(([, files]) => files.length > 1)).toEqual([]);
});

/** What a file declares and exports, each name once: a type and a value may share one. */
function declaredIn(path: string): ReadonlySet<string> {
  const { statements } = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest);
  return new Set(statements.filter(isExported).flatMap(namesIn));
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

function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined;
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true;
}
