// The declarations of the packages are compiled from here, as a project that uses them would.
export type * as Gate from 'tillgate';
export type * as Env from 'tillgate/env';
export type * as Generations from 'tillgate/generations';
export type * as Client from '@tillgate/client';
export type * as Stores from '@tillgate/stores';
export type * as StoresUrl from '@tillgate/stores/url';
export type * as Testing from '@tillgate/testing';
