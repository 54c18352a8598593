/** Exit codes: denied or a failed check, wrong usage, wrong configuration (EX_CONFIG of sysexits). */
export const EXIT = { ok: 0, failed: 1, usage: 2, configuration: 78 } as const;

/** Ends a command with a message for people and an exit code. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}
