import { APP_PACKAGES, requirePackages } from '../core/required-packages';

// Imported before everything that loads one of these packages.
requirePackages('tillgate/app', APP_PACKAGES);
