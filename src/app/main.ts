import { ConfigurationError } from 'tillgate';
import { createApp } from './app';
import { startServer } from './server';
import { appSettings } from './settings';

/** Exit code for a wrong configuration (EX_CONFIG of sysexits). */
const CONFIGURATION = 78;

/** Starts the API. The first SIGTERM or SIGINT lets open requests finish; a second one ends the process immediately. */
async function main(): Promise<void> {
  requireNoArguments(process.argv.slice(2));
  const settings = appSettings();
  const { log, issuer } = settings;
  const { app, drain, close } = createApp(settings);
  const server = await startServer(app, settings);
  let isStopping = false;
  async function stop(): Promise<void> {
    isStopping = true;
    drain();
    await server.close();
    await close();
  }
  function onSignal(_signal: NodeJS.Signals, number: number): void {
    if (isStopping) process.exit(128 + number);
    void stop();
  }
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  log.info({ url: server.url, issuer }, 'the API listens');
}

/** `npm run dev -- --port 3100` ends up here, behind the command that `tillgate dev` starts. */
function requireNoArguments(given: readonly string[]): void {
  if (given.length === 0) return;
  throw new ConfigurationError([
    `arguments: got ${JSON.stringify(given.join(' '))}, expected none; ports are TILLGATE_PORT and TILLGATE_AUTH_PORT: TILLGATE_PORT=3100 npm run dev`,
  ]);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(error instanceof ConfigurationError ? CONFIGURATION : 1);
});
