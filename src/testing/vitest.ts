export { matchers } from './matchers/matchers';
