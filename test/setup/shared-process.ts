import { addEventHandler, getState } from 'jest-circus';
import type { State } from 'jest-circus';
import { createRequire } from 'node:module';

const load = createRequire(__filename);
const MODULES = ['child_process', 'crypto', 'dns', 'fs', 'fs/promises', 'http', 'https', 'net', 'os', 'timers', 'tls'];
const CLASSES = [Array, Date, Error, Function, Map, Number, Object, Promise, RegExp, Set, String];

/** What the suites of one process share. */
const SHARED: readonly (readonly [name: string, holder: object])[] = [
  ...Object.entries({ globalThis, process, 'process.env': process.env, console, JSON, Math, performance }),
  ...CLASSES.flatMap((one) => Object.entries({ [one.name]: one, [`${one.name}.prototype`]: one.prototype as object })),
  ...MODULES.map((name) => [name, load(`node:${name}`) as object] as const),
];
const DIRECTORY = process.cwd();
/** Events of `process`. Packages that clean up when it exits listen to `exit` from when they are loaded. */
const EVENTS = ['SIGINT', 'SIGTERM', 'uncaughtException', 'unhandledRejection', 'warning'];

type Suite = State['rootDescribeBlock'];
type Members = Readonly<Record<string, PropertyDescriptor>>;

let before = SHARED.map(([, holder]) => membersOf(holder));
const listeners = EVENTS.map((event) => process.listenerCount(event));
let suite: Suite | undefined;

// jest-light-runner has no hook around a suite: the first definition in it shows that one has begun.
addEventHandler(() => {
  const { rootDescribeBlock } = getState();
  if (rootDescribeBlock === suite) return;
  suite = rootDescribeBlock;
  // Added once the suite is complete, so that its own hooks run first.
  addHook(rootDescribeBlock, 'beforeAll', () => addHook(rootDescribeBlock, 'afterAll', refuseChanges));
});

function addHook(parent: Suite, type: 'beforeAll' | 'afterAll', fn: () => void): void {
  parent.hooks.push({ type, fn, parent, asyncError: new Error(), seenDone: false, timeout: undefined });
}

function refuseChanges(): void {
  const changed = SHARED.flatMap(([name, holder], index) =>
    putBack(holder, before[index]!).map((member) => `${name}.${member}`),
  );
  EVENTS.forEach((event, index) => {
    const added = process.rawListeners(event).slice(listeners[index]) as (() => void)[];
    for (const one of added) process.removeListener(event, one);
    if (added.length > 0) changed.push(`listeners of ${event}`);
  });
  if (process.cwd() !== DIRECTORY) {
    process.chdir(DIRECTORY);
    changed.push('process.cwd()');
  }
  before = SHARED.map(([, holder]) => membersOf(holder));
  if (changed.length === 0) return;
  throw new Error(`the suite changed, and did not put back, what all suites share: ${changed.join(', ')}`);
}

/** Symbols are left out: packages keep under them what they share with other copies of themselves. */
function membersOf(holder: object): Members {
  const names = Object.getOwnPropertyNames(holder).filter((name) => !name.startsWith('_events'));
  return Object.fromEntries(names.map((name) => [name, Object.getOwnPropertyDescriptor(holder, name)!]));
}

/** Undoes changes and returns the names of the members concerned. */
function putBack(holder: object, members: Members): string[] {
  const now = membersOf(holder);
  const changed = Object.keys({ ...members, ...now }).filter((name) => isChanged(members[name], now[name]));
  for (const name of changed) {
    Reflect.deleteProperty(holder, name);
    if (members[name]) Object.defineProperty(holder, name, members[name]);
  }
  return changed;
}

function isChanged(was: PropertyDescriptor | undefined, is: PropertyDescriptor | undefined): boolean {
  // Node replaces the accessor of a global that it loads late by its value.
  if (was?.get && is && !is.get) return false;
  return !Object.is(was?.value, is?.value) || was?.get !== is?.get || was?.set !== is?.set;
}
