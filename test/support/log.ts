import type { Logger } from '../../src/gate';

export interface LogEntry {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A logger that keeps its entries. */
export interface RecordingLogger extends Logger {
  readonly entries: LogEntry[];
  at(level: LogEntry['level']): readonly LogEntry[];
}

export function recordingLogger(): RecordingLogger {
  const entries: LogEntry[] = [];
  const record = (level: LogEntry['level']) => (fields: object, message: string) =>
    void entries.push({ level, fields: fields as LogEntry['fields'], message });
  return {
    entries,
    at: (level) => entries.filter((entry) => entry.level === level),
    info: record('info'),
    warn: record('warn'),
    error: record('error'),
  };
}
