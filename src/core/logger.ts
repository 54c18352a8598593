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
    console.warn(`tillgate: ${message} ${inAscii(fields)}`);
  },
  error(fields, message) {
    console.error(`tillgate: ${message} ${inAscii(fields)}`);
  },
};

/** JSON with everything beyond printable ASCII escaped: a console takes some of it for commands, and JSON lets it stand. */
function inAscii(fields: object): string {
  const escape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(fields).replace(/[\x7f-\uffff]/g, escape);
}
