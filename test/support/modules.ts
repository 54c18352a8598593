import { join, sep } from 'node:path';

const SRC = join(__dirname, '../../src') + sep;

// `npm test` runs suites in plain Node; Stryker runs them in Jest's contexts, which have a module registry of their own.
const inContext = 'isolateModules' in jest;

/** What `load` returns when nothing of `src` has been loaded: like a second installation of the package. */
export function anotherCopy<T>(load: () => T): T {
  let copy: T | undefined;
  if (inContext) jest.isolateModules(() => void (copy = load()));
  else {
    const ours = Object.entries(require.cache).filter(([path]) => path.startsWith(SRC));
    for (const [path] of ours) delete require.cache[path];
    copy = load();
    Object.assign(require.cache, Object.fromEntries(ours));
  }
  return copy as T;
}

/** Makes `require(name)` throw, until the function that is returned is called. */
export function breakPackage(name: string, failure: Error): () => void {
  const fail = (): never => {
    throw failure;
  };
  if (inContext) {
    jest.doMock(name, fail);
    return () => jest.dontMock(name);
  }
  const path = require.resolve(name);
  const intact = require.cache[path];
  require.cache[path] = Object.defineProperty({} as NodeModule, 'exports', { get: fail });
  return () => {
    if (intact) require.cache[path] = intact;
    else delete require.cache[path];
  };
}
