import { execFileSync } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { startChild } from './child';
import { startDatabase } from './database';
import { folderOf } from './packages';
import { tokenFrom } from './requests';
import { CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer, RunningServer } from './run-server';

const SECTION = 'Spring Authorization Server';
const shared = { section: SECTION, version: '7.1.2' };

/** With the first SQL of the section, and with the second. */
export const SPRING: readonly AuthorizationServer[] = [
  { ...shared, name: SECTION, learns: 'a trigger, by `iat`', start: () => startSpring(0) },
  { ...shared, name: `${SECTION}, stamped`, learns: 'a trigger that stamps and appends', start: () => startSpring(1) },
];

async function startSpring(block: number): Promise<RunningServer> {
  const folder = await folderOf('spring', []);
  const program = join(folder, 'target/login-1.jar');
  if (!existsSync(program)) {
    cpSync(join(__dirname, 'spring'), folder, { recursive: true });
    execFileSync('mvn', ['-q', '-B', '-f', join(folder, 'pom.xml'), 'package'], { stdio: 'ignore' });
  }
  const [database, port] = await Promise.all([startDatabase(), freePort()]);
  const issuer = `http://127.0.0.1:${port}`;
  const settings = [`--issuer=${issuer}`, '--server.address=127.0.0.1', `--server.port=${port}`];
  const jdbc = `jdbc:postgresql://127.0.0.1:${database.port}/postgres`;
  settings.push(`--spring.datasource.url=${jdbc}`, '--spring.datasource.username=postgres');
  const command = ['java', '-Xmx256m', '-jar', program, ...settings] as const;
  const server = await startChild(command, `${issuer}/.well-known/openid-configuration`);
  await database.follow(SECTION, block);
  let secret = `secret-of-${CLIENT}`;
  // RegisteredClientRepository has no method that deletes.
  const change = (set: string): Promise<unknown> =>
    database.query(`UPDATE oauth2_registered_client SET ${set} WHERE client_id = '${CLIENT}'`);
  const token = (id: string, of: string): Promise<string> =>
    tokenFrom(`${issuer}/oauth2/token`, id, of, { scope: SCOPE });
  return {
    issuer,
    options: { generationSource: database.generationSource },
    token: () => token(CLIENT, secret),
    asMade: async () => ({ issuer, token: await token('as-made', 'secret-of-as-made') }),
    changes: {
      description: () => change("client_name = 'Till 9, moved'"),
      secret: () => change(`client_secret = '{noop}${(secret = 'another-secret')}'`),
      deletion: () => database.query(`DELETE FROM oauth2_registered_client WHERE client_id = '${CLIENT}'`),
    },
    stop: async () => {
      await server.stop();
      await database.stop();
    },
  };
}
