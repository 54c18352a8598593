import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import type { Server } from 'node:https';
import type { SecureContextOptions, TlsOptions, TLSSocket } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { ConfigurationError } from '../core/errors';
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

/** Watched by `stat`, because orchestrators replace a file through links, of which no file system event tells. */
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
 * @returns stops following
 */
export function followTls(server: Server, files: TlsFiles, logger: Logger, pollMs = POLL_MS): () => void {
  const paths = [files.certificate, files.key, ...(files.clientAuthorities ? [files.clientAuthorities] : [])];
  const reload = (): void => {
    try {
      server.setSecureContext({ ...readContext(files), minVersion: 'TLSv1.2' });
      logger.warn({ certificate: files.certificate }, 'the certificate of the server was replaced');
    } catch (error) {
      const problems = error instanceof ConfigurationError ? error.problems : [errorLabel(error)];
      logger.warn({ problems }, 'the certificate of the server could not be replaced, the former one stays');
    }
  };
  for (const path of paths) watchFile(path, { interval: pollMs, persistent: false }, reload);
  return () => paths.forEach((path) => unwatchFile(path, reload));
}

/** Closes a connection whose client certificate is of no accepted authority: it proves nothing. */
export function refuseForeignCertificate(socket: TLSSocket): void {
  if (!socket.authorized && socket.getPeerX509Certificate() !== undefined) socket.destroy();
}
