import { readFileSync } from 'node:fs';
import type { Server } from 'node:https';
import type { SecureContextOptions, TlsOptions, TLSSocket } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { ConfigurationError } from '../core/errors';
import { systemSchedule } from '../core/clock';
import type { Schedule } from '../core/clock';
import { errorLabel } from '../core/logger';
import type { Logger } from '../core/logger';
import { describe } from '../core/options';
import type { Settings } from '../settings/settings';

/** Files of the certificate of a server, in PEM. */
export interface TlsFiles {
  /** With the chain after it. */
  readonly certificate: string;
  readonly key: string;
  /** Authorities whose client certificates are accepted; `undefined`: clients are not asked for one. */
  readonly clientAuthorities: string | undefined;
}

/** Read again and again, because orchestrators replace a file through links, of which no file system event tells. */
const POLL_MS = 5_000;

/** The files that the settings name; `undefined`: the server speaks plain HTTP. */
export function tlsFilesOf({ tlsCertFile, tlsKeyFile, tlsCaFile }: Settings): TlsFiles | undefined {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  return { certificate: tlsCertFile, key: tlsKeyFile, clientAuthorities: tlsCaFile };
}

/**
 * Reads the options of a TLS server from files.
 *
 * @throws ConfigurationError when a file cannot be read, or certificate and key do not belong together
 */
export function readTls(files: TlsFiles): TlsOptions {
  const context = readContext(files);
  // Clients may come without a certificate, for /livez as well: the token says which one it needs.
  const clients = files.clientAuthorities === undefined ? {} : { requestCert: true, rejectUnauthorized: false };
  return { ...context, ...clients, minVersion: 'TLSv1.2' };
}

function readContext({ certificate, key, clientAuthorities }: TlsFiles): SecureContextOptions {
  const context = {
    cert: readPem('TILLGATE_TLS_CERT_FILE', certificate),
    key: readPem('TILLGATE_TLS_KEY_FILE', key),
    ...(clientAuthorities !== undefined && { ca: readPem('TILLGATE_TLS_CA_FILE', clientAuthorities) }),
  };
  try {
    createSecureContext(context);
  } catch (error) {
    const why = `cannot be used with TILLGATE_TLS_KEY_FILE (${errorLabel(error)}), expected a certificate in PEM and its key`;
    throw new ConfigurationError([`TILLGATE_TLS_CERT_FILE: ${describe(certificate)} ${why}`]);
  }
  return context;
}

function readPem(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError([
      `${name}: ${describe(path)} cannot be read (${errorLabel(error)}), expected a file in PEM`,
    ]);
  }
}

/**
 * Follows the files: new connections get the certificate that is there now, open ones go on. Files that cannot be used are
 * a warning, and the certificate before them stays.
 *
 * @param used - what the server uses now
 * @returns stops following
 */
export function followTls(
  server: Pick<Server, 'setSecureContext'>,
  files: TlsFiles,
  used: SecureContextOptions,
  { logger, schedule = systemSchedule }: { readonly logger: Logger; readonly schedule?: Schedule },
): () => void {
  let [current, refused] = [textOf(used), ''];
  let timer = schedule(look, POLL_MS);

  function look(): void {
    timer = schedule(look, POLL_MS);
    try {
      const context = readContext(files);
      if (textOf(context) === current) return;
      server.setSecureContext({ ...context, minVersion: 'TLSv1.2' });
      [current, refused] = [textOf(context), ''];
      logger.warn({ certificate: files.certificate }, 'the certificate of the server was replaced');
    } catch (error) {
      const problems = error instanceof ConfigurationError ? error.problems : [errorLabel(error)];
      if (problems.join() === refused) return;
      refused = problems.join();
      logger.warn({ problems }, 'the certificate of the server could not be replaced, the former one stays');
    }
  }
  return () => timer.cancel();
}

function textOf({ cert, key, ca }: SecureContextOptions): string {
  return JSON.stringify([cert, key, ca]);
}

/** Closes a connection whose client certificate is of no accepted authority: it proves nothing. */
export function refuseForeignCertificate(socket: TLSSocket): void {
  if (!socket.authorized && socket.getPeerX509Certificate() !== undefined) socket.destroy();
}
