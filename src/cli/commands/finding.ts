/** One line of the report of `tillgate check`. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
  /** What to do; present when not ok. */
  readonly fix?: string;
}

export function passed(check: string, detail: string): Finding {
  return { check, ok: true, detail };
}

export function failed(check: string, detail: string, fix: string): Finding {
  return { check, ok: false, detail, fix };
}
