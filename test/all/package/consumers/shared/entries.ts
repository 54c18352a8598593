// Every declaration of the package is compiled from here, as a project that uses all of it would.
export type * as App from 'tillgate/app';
export type * as AuthServer from 'tillgate/auth-server';
export type * as Gate from 'tillgate';
export type * as Generations from 'tillgate/generations';
export type * as Testing from 'tillgate/testing';
