import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareDataDirectory, writeDurably } from '../auth-server/data-directory';
import { startBridge, type BridgeState } from '../bridge/bridge';
import { keycloakChanges, type KeycloakCursor } from '../bridge/keycloak';
import { readSettings } from 'tillgate/env';
import { attempt } from 'tillgate/internal';
import { orUsageError, usageError, type CommandContext, type CommandOptions } from '../command';
import { print } from '../output';
import { givenSecret } from '../credentials';
import { openLog } from '../log';
import { openSource } from '../sources';

/** `tillgate bridge keycloak`: publishes the changes of clients of a Keycloak realm as floors, until it is stopped. */
export async function keycloak(context: CommandContext, options: CommandOptions): Promise<void> {
  const { io } = context;
  const settings = readSettings(io.env);
  const { allowHttp, dataDir, maxTokenAgeSeconds } = settings;
  const url = options.url ?? settings.issuer ?? '';
  const clientSecret = await givenSecret(io, options);
  if (options.client === undefined || clientSecret === undefined) {
    throw usageError('give --client and --secret-file: a client whose service account may view events');
  }
  const client = { clientId: options.client, clientSecret };
  const reports = orUsageError(() =>
    keycloakChanges({ url, ...client, allowHttp, maxTokenAgeSeconds, fetch: io.fetch }),
  );
  const source = openSource(io, options.generations);
  try {
    if (!source.append) throw usageError('the source can only be read: give redis(s):// or postgres://');
    const logger = openLog(io, options, settings);
    const bridge = startBridge({ reports, source, logger, maxTokenAgeSeconds, state: bridgeState(dataDir) });
    print(context, { following: url }, `following the clients of ${url}`);
    await io.untilStopped();
    bridge.close();
  } finally {
    await source.close?.();
  }
}

/** A file that is lost costs a read of all events that Keycloak still has, and no change. */
function bridgeState(dataDir: string) {
  const path = join(dataDir, 'bridge-keycloak.json');
  return {
    async load(): Promise<BridgeState<KeycloakCursor> | undefined> {
      const text = await readFile(path, 'utf8').catch(() => '');
      return attempt(() => JSON.parse(text) as BridgeState<KeycloakCursor>);
    },
    async save(state: BridgeState<KeycloakCursor>): Promise<void> {
      await prepareDataDirectory(dataDir);
      await writeDurably(path, `${JSON.stringify(state)}\n`);
    },
  };
}
