// The scaffold's declarations need its peers, which this project has.
export type * as Cli from '@tillgate/cli';
export type * as App from '@tillgate/app';
