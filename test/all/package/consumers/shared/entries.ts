// The declarations of the packages are compiled from here, as a project that uses them would.
export type * as Gate from 'tillgate';
export type * as Env from 'tillgate/env';
export type * as Generations from 'tillgate/generations';
export type * as Testing from '@tillgate/testing';
