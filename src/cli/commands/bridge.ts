import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareDataDirectory } from '../../auth-server/storage/data-directory';
import { writeDurably } from '../../auth-server/storage/durable-file';
import { keycloakChanges, startBridge } from '../../generation/index';
import type { BridgeState, ChangeReports, KeycloakCursor } from '../../generation/index';
import { readSettings } from '../../settings/settings';
import type { Settings } from '../../settings/settings';
import type { CliIo, CommandContext, CommandOptions } from '../command';
import { CliError, EXIT, print } from '../command';
import { givenSecret } from '../credentials';
import { openLog } from '../log';
import { openSource } from './generations';

/** `tillgate bridge keycloak`: publishes the changes of clients of a Keycloak realm as floors, until it is stopped. */
export async function keycloak(context: CommandContext, options: CommandOptions): Promise<number> {
  const { io } = context;
  const settings = readSettings(io.env);
  const url = options.url ?? settings.issuer ?? '';
  const reports = await openReports(io, { ...options, url }, settings);
  const source = openSource(io, options.generations);
  try {
    if (!source.append) throw new CliError('the source can only be read: give redis(s):// or postgres://', EXIT.usage);
    const logger = openLog(io, options, settings);
    const { dataDir, maxTokenAgeSeconds } = settings;
    const bridge = startBridge({ reports, source, logger, maxTokenAgeSeconds, state: stateFile(dataDir) });
    print(context, { following: url }, `following the clients of ${url}`);
    await io.untilStopped();
    bridge.close();
    return EXIT.ok;
  } finally {
    await source.close?.();
  }
}

async function openReports(
  io: CliIo,
  options: CommandOptions & { readonly url: string },
  settings: Settings,
): Promise<ChangeReports<KeycloakCursor>> {
  const clientSecret = await givenSecret(io, options);
  if (options.client === undefined || clientSecret === undefined) {
    throw new CliError('give --client and --secret-file: a client whose service account may view events', EXIT.usage);
  }
  const { allowHttp, maxTokenAgeSeconds } = settings;
  const client = { clientId: options.client, clientSecret };
  try {
    return keycloakChanges({ url: options.url, ...client, allowHttp, maxTokenAgeSeconds, fetch: io.fetch });
  } catch (error) {
    throw new CliError((error as Error).message, EXIT.usage);
  }
}

interface StateFile<Cursor> {
  load(): Promise<BridgeState<Cursor> | undefined>;
  save(state: BridgeState<Cursor>): Promise<void>;
}

/** A file that is lost costs a read of all events that Keycloak still has, and no change. */
function stateFile<Cursor>(dataDir: string): StateFile<Cursor> {
  const path = join(dataDir, 'bridge-keycloak.json');
  return {
    async load() {
      try {
        return JSON.parse(await readFile(path, 'utf8')) as BridgeState<Cursor>;
      } catch {
        return undefined;
      }
    },
    async save(state) {
      await prepareDataDirectory(dataDir);
      await writeDurably(path, `${JSON.stringify(state)}\n`);
    },
  };
}
