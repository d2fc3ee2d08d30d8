import { homeShapes } from './home-shapes.ts';
import { outdoorShapes } from './outdoor-shapes.ts';

export const shapes = { ...homeShapes, ...outdoorShapes };
export type ShapeName = keyof typeof shapes;
