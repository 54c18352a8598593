import { readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import ts from 'typescript';
import { listFiles, nodesOf } from './sources';

/*
 * What belongs to others (callbacks, loggers, sources, stores) may throw, reject, or return a promise where none is expected;
 * in a timer or an event that ends the process. core/callbacks has the ways to call it, and this test counts the places that
 * do not use one. ESLint refuses promises that nothing waits for (`no-floating-promises` in these folders).
 */

const SRC = resolve(__dirname, '../../src/gate');
const FOLDERS = ['core', 'net', 'token', 'generation', 'verifier', 'express', 'possession'];
/** `limited` is `called` with a time limit, where a file has one. */
const WAYS = ['callUnwaited', 'called', 'callNow', 'limited'];

/** Options that are guarded where they are read, in `readOptions()`: any call of them is safe. */
const GUARDED = ['logger', 'schedule', 'info', 'warn', 'error'];
/** Their values are needed where they are asked for, in a request or in a task that is guarded: a failure is the failure of that. */
const VALUES = ['clock', 'fetch', 'random'];
/** Objects of others, by the names that they have here. */
const OBJECTS = ['source', 'store', 'reports', 'replays', 'keyStore'];

/** Those of their methods that no table names. */
const FURTHER_METHODS = ['reader', 'write'];

/** Files that tell a function from other values, and the names under which they call one of others. */
const RECOGNIZED: Readonly<Record<string, readonly string[]>> = {
  'core/callbacks.ts': [],
  'core/options.ts': [],
  // Whether this Node has fetch, and the shape of a request of the Fetch API.
  'net/http.ts': [],
  'express/request-state.ts': [],
  'express/guard.ts': ['test'],
  // Its listeners are our own; a callback of `res.write()` is called as Node calls it.
  'express/socket-errors.ts': [],
  'express/unguarded.ts': [],
  'verifier/held.ts': ['end'],
  'verifier/read-options.ts': [],
  'token/keys/key-store.ts': [],
  'token/scopes.ts': ['map'],
  // Connections of a package: every call is awaited, and its failure is that of the command.
  'stores/postgres/log.ts': [],
  'stores/redis/connection.ts': [],
  'possession/mtls.ts': ['certificate'],
};

/** Timers of Node itself; everywhere else they are those of `schedule`, which is guarded. */
const TIMERS: readonly string[] = [
  'core/clock.ts',
  // Keeps the process alive while `ready()` waits.
  'verifier/gate-verifier.ts',
  'express/unguarded.ts',
  'generation/follow-log.ts',
  'token/introspection/introspector.ts',
  'token/keys/fetch-keys.ts',
  'token/signature.ts',
];

const STORES = resolve(SRC, '../stores');
const paths = [...FOLDERS.map((folder) => join(SRC, folder)), STORES].flatMap((folder) => listFiles(folder));

const files = paths.map((path) => ({
  name: relative(path.startsWith(STORES) ? resolve(STORES, '..') : SRC, path)
    .split(sep)
    .join('/'),
  source: ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true),
}));

const rows = files.flatMap(({ source }) => rowsOf(source));
const isCovered = (name: string): boolean => [...GUARDED, ...VALUES].includes(name);

describe('code of others', () => {
  it('is named by the tables of options', () => {
    expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(['onDecision', 'remember', 'append', 'clock']));
  });

  it('is told from other values in these files only', () => {
    const found = files.filter(({ source }) => nodesOf(source).some(isFunctionTest)).map(({ name }) => name);
    expect(found.filter((name) => !Object.hasOwn(RECOGNIZED, name))).toEqual([]);
  });

  it('is called through core/callbacks', () => {
    const ofRows = rows.filter(({ isMethod, name }) => isMethod && !isCovered(name)).map(({ name }) => name);
    const methods = [...ofRows, ...FURTHER_METHODS];
    const functions = rows.filter(({ isMethod, name }) => !isMethod && !isCovered(name)).map(({ name }) => name);
    const raw = files.flatMap(({ name, source }) => {
      const calls = nodesOf(source).filter(ts.isCallExpression);
      const ofOthers = calls.filter(({ expression }) => {
        if (ts.isIdentifier(expression)) return [...functions, ...(RECOGNIZED[name] ?? [])].includes(expression.text);
        return ts.isPropertyAccessExpression(expression) && isMethodOfOthers(expression, methods);
      });
      return ofOthers.filter((call) => !isGuarded(call)).map((call) => `${name}: ${call.getText()}`);
    });
    expect(raw).toEqual([]);
  });

  it('is not called from timers of Node', () => {
    const found = files.filter(({ source }) => nodesOf(source).some(isTimer)).map(({ name }) => name);
    expect(found.filter((name) => !TIMERS.includes(name))).toEqual([]);
  });
});

interface Row {
  readonly name: string;
  readonly isMethod: boolean;
}

/** The options that are functions, and the methods of those that have methods. */
function rowsOf(source: ts.SourceFile): Row[] {
  return nodesOf(source).flatMap((node): Row[] => {
    if (!ts.isCallExpression(node)) return [];
    const [methods] = node.arguments;
    if (calleeOf(node) === 'withMethods' && methods && ts.isArrayLiteralExpression(methods)) {
      return methods.elements.filter(ts.isStringLiteral).map(({ text }) => ({ name: text, isMethod: true }));
    }
    const row = ts.findAncestor(node, ts.isPropertyAssignment);
    return calleeOf(node) === 'callable' && row ? [{ name: row.name.getText(), isMethod: false }] : [];
  });
}

function calleeOf({ expression }: ts.CallExpression): string {
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text;
  return ts.isIdentifier(expression) ? expression.text : '';
}

/** `store.read()`, `this.#replays.remember()`, `options.source.append()`. */
function isMethodOfOthers(
  { name, expression: owner }: ts.PropertyAccessExpression,
  methods: readonly string[],
): boolean {
  const ownerName = ts.isPropertyAccessExpression(owner) ? owner.name.text : owner.getText();
  return methods.includes(name.text) && OBJECTS.includes(ownerName.replace(/^#/, ''));
}

/** Within the function that one of the ways is given. */
function isGuarded(call: ts.CallExpression): boolean {
  const way = ts.findAncestor(call.parent, (node): node is ts.CallExpression => {
    return ts.isCallExpression(node) && WAYS.includes(calleeOf(node));
  });
  return way?.arguments.some((argument) => argument.pos <= call.pos && call.end <= argument.end) === true;
}

function isFunctionTest(node: ts.Node): boolean {
  return (
    ts.isBinaryExpression(node) &&
    ts.isTypeOfExpression(node.left) &&
    ts.isStringLiteral(node.right) &&
    node.right.text === 'function'
  );
}

function isTimer(node: ts.Node): boolean {
  if (ts.isImportDeclaration(node)) return /^node:timers/.test((node.moduleSpecifier as ts.StringLiteral).text);
  const names = ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'nextTick'];
  return ts.isCallExpression(node) && names.includes(calleeOf(node));
}
