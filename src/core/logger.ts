import { escapeNonAscii } from './escape';

/** Where a gate reports to. pino, bunyan and the like fit as they are. Fields never hold a token, a secret or a header value. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The default: silent about the ordinary, warnings and errors to the console as one line each. */
export const consoleLogger: Logger = {
  info() {},
  warn(fields, message) {
    console.warn(`tillgate: ${message} ${escapeNonAscii(JSON.stringify(fields))}`);
  },
  error(fields, message) {
    console.error(`tillgate: ${message} ${escapeNonAscii(JSON.stringify(fields))}`);
  },
};
