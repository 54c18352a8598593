import { SourceError, describeFailure } from './source-error';

/** What an operator can mend, by SQLSTATE (PostgreSQL manual, appendix A). */
const ADVICE: Readonly<Record<string, string>> = {
  '28000': 'the user or this address is not admitted (pg_hba.conf)',
  '28P01': 'user name or password is wrong',
  '3D000': 'the database does not exist',
  '3F000': 'there is no schema to create the table in',
  '42501': 'the user lacks a privilege: SELECT to read, INSERT and UPDATE to publish, CREATE to create the table',
  '42P01': 'the table does not exist; create it with createTable: true or with the SQL of postgresSchema()',
  '25006': 'this server is read-only; use the address of the primary',
  '57P01': 'the server has ended the connection',
  '53300': 'the server has no connection left',
};

/** The failure of a statement in our own words. */
export function postgresFailure(error: unknown): SourceError {
  if (error instanceof SourceError && error.message.startsWith('PostgreSQL: ')) return error;
  const advice = ADVICE[codeOf(error)];
  const detail = advice === undefined ? describeFailure(error) : `${advice} (${codeOf(error)})`;
  return new SourceError(`PostgreSQL: ${detail}`, { cause: error });
}

function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
