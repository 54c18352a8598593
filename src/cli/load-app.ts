import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ConfigurationError } from '../core/configuration-error';
import { layersOf } from '../openapi/express-layer';
import { CliError, EXIT } from './exit';

/**
 * Loads the Express app that a module exports, under whichever name: CommonJS or ESM.
 *
 * @param module - path of the module, from the current directory
 * @throws CliError when it cannot be loaded, or exports no app or several
 * @throws ConfigurationError when the app refuses its configuration
 */
export async function loadApp(module: string): Promise<object> {
  const exported = await loadModule(module);
  const apps = new Set(candidates(exported).filter(isApp));
  const [app, ...others] = apps;
  if (app !== undefined && others.length === 0) return app;
  const names = Object.keys(exported ?? {}).join(', ') || 'nothing';
  throw new CliError(
    `${module}: expected a module that exports one Express app, got ${apps.size} apps in its exports (${names}); ` +
      'export the app itself, without listening: module.exports = app, or export const app = ...',
    EXIT.usage,
  );
}

/**
 * Loads a module, CommonJS or ESM.
 *
 * @throws CliError when it cannot be loaded
 * @throws ConfigurationError when it refuses its configuration
 */
export async function loadModule(module: string): Promise<unknown> {
  const path = resolve(module);
  try {
    return await requireOrImport(path);
  } catch (error) {
    // It may come from another copy of this package: compare the name, not the class.
    const { name, message, problems } = error as Error & { readonly problems?: readonly string[] };
    if (name === 'ConfigurationError' && problems) throw new ConfigurationError(problems);
    throw new CliError(`${module}: cannot be loaded: ${String(message)}`, EXIT.usage);
  }
}

async function requireOrImport(path: string): Promise<unknown> {
  try {
    return createRequire(path)(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_REQUIRE_ASYNC_MODULE' && code !== 'ERR_REQUIRE_ESM') throw error;
    return import(pathToFileURL(path).href);
  }
}

/** What a module may export an app as: the module itself, its default, a name of either. */
export function candidates(exported: unknown): readonly unknown[] {
  const fallback = isApp(exported) ? undefined : (Object(exported) as { default?: unknown }).default;
  return [exported, fallback, ...namesOf(exported), ...namesOf(fallback)];
}

function namesOf(holder: unknown): readonly unknown[] {
  return isApp(holder) ? [] : Object.values(Object(holder) as object);
}

/** Whether a value is an Express app. */
export function isApp(value: unknown): value is object {
  return typeof value === 'function' && layersOf(value) !== undefined;
}
