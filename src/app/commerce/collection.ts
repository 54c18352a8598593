import type { Row, Rules } from './actions';

/** The rows of one placeholder, in memory. Bodies have passed the validation by openapi.yaml. */
export interface Collection {
  /** The rows after that with the number `after`, and the number of the last one if more follow. The first row has 1. */
  page(limit: number, after: number): { readonly rows: readonly Row[]; readonly last: number | undefined };
  find(id: string): Row | undefined;
  create(input: object): Row;
  /** `undefined` when no row has this id. */
  update(id: string, changes: object): Row | undefined;
  /** Puts a changed row in the place of the one with its id. */
  replace(row: Row): void;
  remove(id: string): boolean;
}

/** Beyond these bounds the oldest created row is removed: sample data is not a database. */
const MAX_CREATED_ROWS = 1_000;
/** In characters of JSON. It bounds the largest page too, so that serialising one does not block other requests. */
const MAX_CREATED_SIZE = 1_000_000;

/**
 * Opens the rows of a placeholder. Ids continue those of the sample: `ord_0001` makes `ord_0006` after five rows.
 *
 * @param now - the time in RFC 3339
 */
export function collection(sample: readonly object[], rules: Rules, now: () => string): Collection {
  const [prefix = ''] = (sample as readonly Row[])[0]?.id.split('_') ?? [];
  // By number, ascending: a cursor stays valid when its row is removed.
  const rows = new Map((sample as readonly Row[]).map((row, index) => [index + 1, row]));
  const sizes = new Map<number, number>();
  let size = 0;
  let last = rows.size;

  function put(number: number, row: Row): Row {
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

  function numberOf(id: string): number {
    const [, own, digits] = /^([a-z]+)_(\d{4,15})$/.exec(id) ?? [];
    return own === prefix ? Number(digits) : 0;
  }

  function find(id: string): Row | undefined {
    const row = rows.get(numberOf(id));
    return row?.id === id ? row : undefined;
  }

  return {
    find,
    page(limit, after) {
      const following = [...rows].filter(([number]) => number > after);
      const shown = following.slice(0, limit);
      const lastShown = following.length > shown.length ? shown.at(-1)?.[0] : undefined;
      return { rows: shown.map(([, row]) => row), last: lastShown };
    },
    create(input) {
      last += 1;
      const members = rules.complete?.(input, now()) ?? input;
      return put(last, { id: `${prefix}_${String(last).padStart(4, '0')}`, ...members });
    },
    update(id, changes) {
      const row = find(id);
      const changed = row && { ...row, ...changes, id };
      return changed && put(numberOf(id), rules.settle?.(changed, now()) ?? changed);
    },
    replace: (row) => void put(numberOf(row.id), row),
    remove: (id) => find(id) !== undefined && drop(numberOf(id)),
  };
}
