/** A row of sample data. */
export interface Row {
  readonly id: string;
}

/** The result of an action: the changed row, and the body of the response if that is not the row; or a conflict. */
export type Outcome<R> = { readonly row: R; readonly response?: object } | { readonly conflict: string };

/** What is particular to one resource. `Input` is the body of a creation. */
interface Definition<R extends Row, Input extends object> {
  /** `ord` makes ids like `ord_0001`. */
  readonly prefix: string;
  readonly sample: readonly Omit<R, 'id'>[];
  /** Adds the defaults of a new row. `now` is RFC 3339. */
  readonly complete: (input: Input, now: string) => Omit<R, 'id'>;
  /** Updates members that depend on others, after a change. Default: none. */
  readonly settle?: (row: R, now: string) => R;
  /** The row as a caller with these scopes may see it. Default: as it is. */
  readonly present?: (row: R, scopes: readonly string[]) => R;
  /** By the names in the table of resources. `input` is the body of the request, of the shape that openapi.yaml gives it. */
  readonly actions?: Readonly<Record<string, (row: R, input: never, now: string) => Outcome<R>>>;
}

/** The rows of one placeholder, in memory. Bodies have passed `requestValidation()`. */
export interface Collection {
  /**
   * The rows after that with the id `after`, and the id of the last one if more follow; `undefined` when no row can have
   * this id.
   */
  page(
    limit: number,
    after: string | undefined,
  ): { readonly rows: readonly Row[]; readonly lastId: string | undefined } | undefined;
  find(id: string): Row | undefined;
  create(input: object): Row;
  update(id: string, changes: object): Row | undefined;
  remove(id: string): boolean;
  /** `undefined` when no row has this id. */
  act(action: string, id: string, input: object): Outcome<Row> | undefined;
  present(row: Row, scopes: readonly string[]): Row;
}

/** Beyond these bounds the oldest created row is removed: sample data is not a database. */
const MAX_CREATED_ROWS = 1_000;
/** In characters of JSON. It bounds the largest page too, so that serialising one does not block other requests. */
const MAX_CREATED_SIZE = 1_000_000;

/** Makes the collection of a placeholder: a new one with the sample per call of the result. `clock` in ms since the epoch. */
export function collection<R extends Row, Input extends object>(
  definition: Definition<R, Input>,
): (clock: () => number) => Collection {
  const { prefix, sample, complete, settle = (row: R) => row, present = (row: R) => row, actions = {} } = definition;

  return function open(clock) {
    // By number, ascending: a cursor stays valid when its row is removed.
    const rows = new Map<number, R>();
    const sizes = new Map<number, number>();
    let size = 0;
    let last = 0;
    const now = (): string => new Date(clock()).toISOString();

    function add(members: Omit<R, 'id'>): R {
      last += 1;
      return put(last, { id: `${prefix}_${String(last).padStart(4, '0')}`, ...members } as R);
    }

    function put(number: number, row: R): R {
      rows.set(number, row);
      if (number <= sample.length) return row;
      const newSize = JSON.stringify(row).length;
      size += newSize - (sizes.get(number) ?? 0);
      sizes.set(number, newSize);
      for (const oldest of sizes.keys()) {
        if (sizes.size <= MAX_CREATED_ROWS && size <= MAX_CREATED_SIZE) break;
        drop(oldest);
      }
      return row;
    }

    function drop(number: number): boolean {
      size -= sizes.get(number) ?? 0;
      sizes.delete(number);
      return rows.delete(number);
    }

    function numberOf(id: string): number | undefined {
      const digits = id.startsWith(`${prefix}_`) ? id.slice(prefix.length + 1) : '';
      return /^\d{4,15}$/.test(digits) ? Number(digits) : undefined;
    }

    function find(id: string): R | undefined {
      const row = rows.get(numberOf(id) ?? 0);
      return row?.id === id ? row : undefined;
    }

    function replace(row: R): R {
      return put(numberOf(row.id) ?? 0, row);
    }

    sample.forEach(add);
    return {
      find,
      page(limit, after) {
        const start = after === undefined ? 0 : numberOf(after);
        if (start === undefined) return undefined;
        const following = [...rows].filter(([number]) => number > start).map(([, row]) => row);
        const shown = following.slice(0, limit);
        return { rows: shown, lastId: following.length > shown.length ? shown.at(-1)?.id : undefined };
      },
      create: (input) => add(complete(input as Input, now())),
      update(id, changes) {
        const row = find(id);
        return row && replace(settle({ ...row, ...changes, id }, now()));
      },
      remove: (id) => find(id) !== undefined && drop(numberOf(id) ?? 0),
      act(action, id, input) {
        const row = find(id);
        const act = actions[action];
        if (!row || !act) return undefined;
        const outcome = act(row, input as never, now());
        if ('row' in outcome) replace(outcome.row);
        return outcome;
      },
      present: (row, scopes) => present(row as R, scopes),
    };
  };
}
