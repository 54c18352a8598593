/** One thing that is measured. */
export interface Suite {
  readonly about: string;
  /** Options and their values when none are given. */
  readonly defaults: Readonly<Record<string, number>>;
  /** Returns a Markdown table. */
  run(options: Readonly<Record<string, number>>): Promise<string>;
}

/** Waits in real time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Bytes as MB with one decimal. */
export function megabytes(bytes: number): number {
  return Math.round((bytes / 1_048_576) * 10) / 10;
}
