import { collection } from '../collection';
import type { Row } from '../collection';

interface Location extends Row {
  readonly name: string;
  readonly kind: 'store' | 'restaurant' | 'warehouse';
  readonly address: {
    readonly street: string;
    readonly city: string;
    readonly postal_code: string;
    readonly country: string;
  };
  readonly time_zone: string;
  readonly status: 'open' | 'closed';
}

type NewLocation = Omit<Location, 'id' | 'status'> & Partial<Pick<Location, 'status'>>;

const TIME_ZONE = 'Europe/London';

/** Stores, restaurants and warehouses. */
export const locations = collection<Location, NewLocation>({
  prefix: 'loc',
  sample: [
    {
      name: 'High Street store',
      kind: 'store',
      address: { street: '48 High Street', city: 'Bristol', postal_code: 'BS1 2AW', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'open',
    },
    {
      name: 'The Harbour Kitchen',
      kind: 'restaurant',
      address: { street: '3 Quayside', city: 'Bristol', postal_code: 'BS1 4RB', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'open',
    },
    {
      name: 'Avonmouth warehouse',
      kind: 'warehouse',
      address: { street: '9 Dock Road', city: 'Bristol', postal_code: 'BS11 9DQ', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'open',
    },
    {
      name: 'Station kiosk',
      kind: 'store',
      address: { street: 'Platform 3, Central Station', city: 'Bath', postal_code: 'BA1 1SU', country: 'GB' },
      time_zone: TIME_ZONE,
      status: 'closed',
    },
  ],
  complete: (input) => ({ status: 'open', ...input }),
});
