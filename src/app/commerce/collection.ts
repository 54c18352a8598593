/** A row of sample data: openapi.yaml gives its other members. */
export interface Row {
  readonly id: string;
}

/** The result of an action: the changed row, and the body of the response if that is not the row; or a conflict. */
type Outcome = { readonly row: Row; readonly response?: object } | { readonly conflict: string };

/** What is particular to one resource. The types of its rows are those of its sample. */
interface Definition<Sample extends object> {
  /** `ord` makes ids like `ord_0001`. */
  readonly prefix: string;
  readonly sample: readonly Sample[];
  /** What a new row has where the body of the request leaves it out. */
  readonly defaults?: object;
  /** Adds the members of a new row that no body sets. `now` is RFC 3339. Default: none. */
  readonly complete?: (input: Sample, now: string) => object;
  /** Updates members that depend on others, after a change. Default: none. */
  readonly settle?: (row: Sample & Row, now: string) => Row;
  /** The row as a caller with these scopes may see it. Default: as it is. */
  readonly present?: (row: Sample & Row, scopes: readonly string[]) => Row;
  /** By the names in the table of resources. `input` is the body of the request. */
  readonly actions?: Readonly<
    Record<string, (row: Sample & Row, input: Readonly<Record<string, unknown>>, now: string) => Outcome>
  >;
}

/** The rows of one placeholder, in memory. Bodies have passed `requestValidation()`. */
export interface Collection {
  /** The rows after that with the number `after`, and the number of the last one if more follow. The first row has 1. */
  page(limit: number, after: number): { readonly rows: readonly Row[]; readonly last: number | undefined };
  find(id: string): Row | undefined;
  create(input: object): Row;
  update(id: string, changes: object): Row | undefined;
  remove(id: string): boolean;
  /** `undefined` when no row has this id. */
  act(action: string, id: string, input: Readonly<Record<string, unknown>>): Outcome | undefined;
  present(row: Row, scopes: readonly string[]): Row;
}

/** Beyond these bounds the oldest created row is removed: sample data is not a database. */
const MAX_CREATED_ROWS = 1_000;
/** In characters of JSON. It bounds the largest page too, so that serialising one does not block other requests. */
const MAX_CREATED_SIZE = 1_000_000;

/** Makes the collection of a placeholder: a new one with the sample per call of the result. `clock` in ms since the epoch. */
export function collection<Sample extends object>(definition: Definition<Sample>): (clock: () => number) => Collection {
  type StoredRow = Sample & Row;
  const asItIs = <Value>(value: Value): Value => value;
  const { prefix, sample, defaults, complete = asItIs, settle = asItIs, present = asItIs, actions = {} } = definition;

  return function open(clock) {
    // By number, ascending: a cursor stays valid when its row is removed.
    const rows = new Map<number, StoredRow>();
    const sizes = new Map<number, number>();
    let size = 0;
    let last = 0;
    const now = (): string => new Date(clock()).toISOString();

    function add(members: object): Row {
      last += 1;
      return put(last, { id: `${prefix}_${String(last).padStart(4, '0')}`, ...members });
    }

    function put(number: number, row: Row): Row {
      rows.set(number, row as StoredRow);
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

    function find(id: string): StoredRow | undefined {
      const row = rows.get(numberOf(id) ?? 0);
      return row?.id === id ? row : undefined;
    }

    function replace(row: Row): Row {
      return put(numberOf(row.id) ?? 0, row);
    }

    sample.forEach(add);
    return {
      find,
      page(limit, after) {
        const following = [...rows].filter(([number]) => number > after);
        const shown = following.slice(0, limit);
        const lastShown = following.length > shown.length ? shown.at(-1)?.[0] : undefined;
        return { rows: shown.map(([, row]) => row), last: lastShown };
      },
      create: (input) => add(complete({ ...defaults, ...input } as Sample, now())),
      update(id, changes) {
        const row = find(id);
        return row && replace(settle({ ...row, ...changes, id }, now()));
      },
      remove: (id) => find(id) !== undefined && drop(numberOf(id) ?? 0),
      act(action, id, input) {
        const row = find(id);
        const act = actions[action];
        if (!row || !act) return undefined;
        const outcome = act(row, input, now());
        if ('row' in outcome) replace(outcome.row);
        return outcome;
      },
      present: (row, scopes) => present(row as StoredRow, scopes),
    };
  };
}
