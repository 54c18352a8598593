import { testHalf } from './halves';

testHalf('sales');
