/** Pictures that this process serves itself: those whose address begins with `address`. */
export interface OwnPictures {
  address: string;
  answer(request: Request): Promise<Response>;
}
