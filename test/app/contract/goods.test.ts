import { testHalf } from './halves';

testHalf('goods');
