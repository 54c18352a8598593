export { matchers } from './matchers';
