import type { Express } from 'express';
import { createApp } from '../../src/app/app';
import type { CommerceApp } from '../../src/app/app';
import { createLog } from '../../src/app/log';
import { appSettings } from '../../src/app/settings';
import type { AppSettings } from '../../src/app/settings';
import { createTestIssuer } from '../../src/testing';

/** The issuer that the gates of the scenes trust. */
export const issuer = createTestIssuer();

/** Settings of the scaffold, whose gate trusts the test issuer. */
export function settingsFor(env: Record<string, string> = {}, log = createLog('silent')): AppSettings {
  const settings = appSettings({ TILLGATE_AUTH_URL: 'https://login.test', ...env });
  return { ...settings, gate: issuer.options, log };
}

/** The scaffold, and what it logs. */
export interface AppScene extends CommerceApp {
  readonly app: Express;
  /** Every line of the log. */
  readonly lines: () => readonly string[];
  /** The same as objects. */
  readonly events: () => readonly Readonly<Record<string, unknown>>[];
}

const opened: CommerceApp[] = [];
afterAll(() => Promise.all(opened.map((one) => one.close())));

/** Makes the scaffold, which is closed after the last test of the file. */
export function appScene(env: Record<string, string> = {}, gate: AppSettings['gate'] = issuer.options): AppScene {
  const written: string[] = [];
  const log = createLog('trace', { write: (line) => void written.push(line) });
  const made = createApp({ ...settingsFor(env, log), gate });
  opened.push(made);
  const lines = (): readonly string[] => written.join('').split('\n').filter(Boolean);
  return { ...made, lines, events: () => lines().map((line) => JSON.parse(line) as Record<string, unknown>) };
}
