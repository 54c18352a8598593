import { AUTH_SERVER_PACKAGES, requirePackages } from '../core/required-packages';

// Imported before everything that loads one of these packages.
requirePackages('tillgate/auth-server', AUTH_SERVER_PACKAGES);
